"""Keeps EC2NodeClasses and their claims true: conditions, tags, partitions, reservations; cleans up after them."""
