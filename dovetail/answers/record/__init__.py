"""`dovetail log` and `dovetail savings`: what happened to nodes, as Temporal's records have it."""
