"""The whole system on the embedded world: a real Temporal server, workers and the CLI as processes of their own."""
