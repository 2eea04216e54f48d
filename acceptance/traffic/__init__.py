"""Recorded traffic of upstream's AWS provider: each case played through our front door, calls and objects compared."""
