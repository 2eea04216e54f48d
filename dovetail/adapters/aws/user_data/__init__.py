"""What a new machine runs at its start, for every image family (W-96 to W-100)."""
