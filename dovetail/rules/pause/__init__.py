"""Pauses and Freezes."""
