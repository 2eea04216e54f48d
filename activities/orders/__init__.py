"""Finding what is unfinished, and carrying the orders out."""
