"""The Kubernetes API: its client, the watch that feeds the cache, reads and writes, failures."""
