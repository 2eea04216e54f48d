"""How many nodes of a pool may be disrupted at the same time."""
