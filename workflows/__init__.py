"""Order, waiting, undo. Workflows carry plans out; they never decide policy."""
