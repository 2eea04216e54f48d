"""Room that CapacityBuffers ask for, counted in pods that do not exist."""
