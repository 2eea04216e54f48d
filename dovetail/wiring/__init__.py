"""The world that everything works on: which adapters answer the ports, opened and closed here alone."""
