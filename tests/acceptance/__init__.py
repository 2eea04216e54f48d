"""Tests of what judges the product."""
