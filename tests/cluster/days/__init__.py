"""Random days: what people, AWS and sick servers do in them, and what is watched meanwhile."""
