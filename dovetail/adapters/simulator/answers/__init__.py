"""The ports, answered by the simulated cluster and cloud."""
