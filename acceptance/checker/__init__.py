"""An independent judge of placements: shares no code with the engine."""
