"""Tests of the commands that operators type."""
