"""Which nodes may go at all, and what protects the others."""
