"""What is counted and printed, under Karpenter's names."""
