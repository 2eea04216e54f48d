"""Which cluster a workflow belongs to: in the header of every step, and in the attributes by which people find it."""
