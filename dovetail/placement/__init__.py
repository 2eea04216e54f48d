"""Where pods go: placement of pods on existing, coming and proposed nodes."""
