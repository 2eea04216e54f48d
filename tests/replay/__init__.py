"""Recorded histories replayed against today's code, and the fingerprints of what workflows ask for."""
