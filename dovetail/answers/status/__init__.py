"""`dovetail status`: what it costs, what moves, what needs a person, and what each NodePool may do."""
