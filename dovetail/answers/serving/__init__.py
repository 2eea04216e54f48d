"""What a worker answers about the cluster it works for, read-only, as JSON or as text."""
