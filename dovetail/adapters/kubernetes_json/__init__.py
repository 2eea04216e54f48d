"""JSON of Kubernetes, without I/O: read into the model, written from it, cached as a watch reports it."""
