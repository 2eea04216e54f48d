"""Closed lists of reasons: why a node is disrupted or not, and why else it leaves."""
