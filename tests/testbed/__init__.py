"""Is the test bed itself right? A wrong cloud or control plane would make every other test worth nothing."""
