"""`dovetail history`: what became of a node, claim or workflow."""
