"""Closed lists of reasons: why a node is disrupted or not, and why it leaves otherwise."""
