"""Where pods are to go: placements, places that are kept for them, and moves of their own."""
