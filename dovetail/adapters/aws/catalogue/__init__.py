"""What AWS sells: instance types, prices, capacity, and what is out of stock."""
