"""Is a new node on its way: launch requests, registration, initialization, liveness, conditions, what is unfinished."""
