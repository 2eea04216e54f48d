"""AWS: EC2, its catalogue and prices, images, instance profiles, interruptions. Nothing outside knows of it."""
