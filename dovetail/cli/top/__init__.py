"""`dovetail top`: the cluster as it is now, live in a terminal, from the documents of a worker's API."""
