"""What a worker costs: its looks, its scrape, being watched, many clusters, many nodes."""
