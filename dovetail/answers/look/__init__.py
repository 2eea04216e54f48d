"""A look at a cluster, live or recorded, that answers are made from."""
