"""What is counted and measured under names of our own."""
