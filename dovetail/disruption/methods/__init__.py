"""The ways in which nodes are chosen to go, one module each."""
