"""Of which cluster a workflow is: in the header of every step, and in the attributes by which people find it."""
