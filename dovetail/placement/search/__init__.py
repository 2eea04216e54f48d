"""Which node each pod gets."""
