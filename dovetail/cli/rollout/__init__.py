"""`dovetail rollout`: roll-outs shown, watched, approved, and how each went."""
