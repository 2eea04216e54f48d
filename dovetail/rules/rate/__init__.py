"""Rates: how many nodes may begin to leave within a period."""
