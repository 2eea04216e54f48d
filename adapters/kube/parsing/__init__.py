"""Raw Kubernetes JSON becomes core.model objects here and nowhere else."""
