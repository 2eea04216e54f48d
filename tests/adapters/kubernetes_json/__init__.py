"""Reading, writing and caching Kubernetes JSON, without a server."""
