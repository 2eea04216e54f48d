"""The cloud AWS: instance types and prices, launches, EC2NodeClasses, interruptions."""
