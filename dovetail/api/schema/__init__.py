"""What the models of all kinds share, and how a model becomes a CRD's schema."""
