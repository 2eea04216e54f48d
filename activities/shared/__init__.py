"""What activities of every kind share."""
