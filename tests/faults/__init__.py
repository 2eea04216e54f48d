"""Faults on order: a worker that kills itself, repeats or fails its steps where a test says so."""
