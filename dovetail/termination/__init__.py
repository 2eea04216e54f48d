"""How a node leaves: which pods wait, in which order they go, by force or by eviction, which volumes hold it."""
