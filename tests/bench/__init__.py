"""Measured speed, printed beside upstream's."""
