"""How steps change objects that others change too."""
