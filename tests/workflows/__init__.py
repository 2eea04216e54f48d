"""Workflows on the time-skipping server with fake steps: order, deadlines, undo, pause, cancel at every step."""
