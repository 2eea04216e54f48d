"""What a worker does while Temporal does not answer it: it notices, does what cannot wait, and hands it back."""
