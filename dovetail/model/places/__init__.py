"""Where pods should be placed: placements, places that are kept for them, and moves of their own."""
