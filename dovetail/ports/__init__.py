"""Asks. Protocols of at most five methods each, small enough to fake in ten lines."""
