"""The Kubernetes API: a watch-fed cache, writes, and how its failures are classified."""
