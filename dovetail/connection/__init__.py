"""The link to Temporal: what it is made of, what it is called, how it is secured, and its exchange while we run."""
