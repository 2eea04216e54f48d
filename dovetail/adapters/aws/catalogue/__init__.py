"""What a class could launch now: offerings with their prices, less shortages."""
