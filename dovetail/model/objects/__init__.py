"""The other objects that a decision reads, which of them belong together, and those that cannot be read."""
