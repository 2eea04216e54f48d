"""Order, waiting, undo. Workflows carry out plans; they never decide policy."""
