"""Draining a node, detaching its volumes, terminating its instance."""
