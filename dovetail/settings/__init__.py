"""What an operator sets: as environment, flags or file, and what the deciding parts get of it."""
