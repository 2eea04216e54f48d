"""Looks for the cheapest bins of a problem; knows arrays alone."""
