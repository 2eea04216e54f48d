"""Raw Kubernetes JSON becomes dovetail.model objects, here and nowhere else."""
