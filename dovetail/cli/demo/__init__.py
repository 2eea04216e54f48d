"""`dovetail demo`: a story of a few nodes that a person can follow in the terminal, with its facts asserted."""
