"""What a new instance runs at its start, for every image family (W-96 to W-100)."""
