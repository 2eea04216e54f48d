"""Launching the instance of a claim, and waiting until it is a node."""
