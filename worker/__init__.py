"""Wires: settings, composition root, entry points, telemetry, health."""
