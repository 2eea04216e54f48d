"""What a worker answers about the cluster it works for, to whoever may ask: read-only, as JSON or as text."""
