"""Roll-outs: steps, gates, approvals, the way back."""
