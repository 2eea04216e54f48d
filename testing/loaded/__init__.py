"""Processes of the product that begin as a copy of one that has loaded it: no test waits for the same imports again."""
