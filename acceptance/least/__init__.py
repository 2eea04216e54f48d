"""The least that any answer to an input can cost: a bound that is near, worked out without the engine."""
