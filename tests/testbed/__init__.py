"""Tests of the test bed: a wrong cloud or control plane would make the other tests worthless."""
