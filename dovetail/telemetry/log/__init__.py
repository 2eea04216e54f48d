"""What the log says: one line for each thing done, in Karpenter's words."""
