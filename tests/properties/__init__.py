"""Properties that hold for every cluster that hypothesis can think of."""
