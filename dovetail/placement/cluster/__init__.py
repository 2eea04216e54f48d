"""What a decision about placement knows of the cluster before any pod is placed."""
