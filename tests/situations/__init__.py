"""Situations that an operator meets: what commands must say then, and must not."""
