"""Tests of the things that decisions are about."""
