"""A day in fast motion: what a cluster costs and disturbs under each policy, by the product's own decisions."""
