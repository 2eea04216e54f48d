"""What an instance type is, and what a NodeClass makes of it: labels, capacity, overhead."""
