"""What the log says: one line for each deed, in Karpenter's words."""
