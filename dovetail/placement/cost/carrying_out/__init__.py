"""Makes nodes of the bins that were found, in a pass with all rules."""
