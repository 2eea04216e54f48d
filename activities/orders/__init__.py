"""Finding what is unfinished, and putting it in hand."""
