"""Benchmarks of placement: how long from raw JSON to the answer, and how good the answer is. Never a timed test."""
