"""A stage: the simulated world with a real Temporal server and workers as processes."""
