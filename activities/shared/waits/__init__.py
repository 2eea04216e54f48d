"""How steps wait: for changes, by repeated looks, side by side, and seen by others."""
