"""All clusters of one Temporal namespace: what each says of itself, and which of them say nothing any more."""
