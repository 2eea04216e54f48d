"""Processes of the product that start as a copy of one that has loaded it: no test waits for the same imports again."""
