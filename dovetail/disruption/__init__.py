"""Which nodes should leave, when, and why others stay: pure functions over a snapshot."""
