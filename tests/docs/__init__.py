"""Tests of the generated pages of the documentation."""
