"""One scene for each promise of the guides, on real servers, many beside each other in one cluster."""
