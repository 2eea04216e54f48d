"""Which nodes may be disrupted at all, and what protects the others."""
