"""Reads a finished pass as a problem in arrays."""
