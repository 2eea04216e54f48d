"""Prometheus, asked by its HTTP API."""
