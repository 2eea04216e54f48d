"""The Kubernetes API: a watch-fed cache, parsing, writes, failures."""
