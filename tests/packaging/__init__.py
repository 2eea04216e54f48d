"""What is installed where Dovetail is installed."""
