"""Which nodes should go, when, and why not: pure functions over a snapshot."""
