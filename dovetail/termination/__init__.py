"""How a node leaves: which pods hold it, in which order they leave and how, which volumes hold it, and all pauses."""
