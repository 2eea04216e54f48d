"""How many nodes of a pool may go at the same time."""
