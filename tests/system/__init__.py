"""The whole system on the simulated world: a real Temporal server, workers and the CLI as processes of their own."""
