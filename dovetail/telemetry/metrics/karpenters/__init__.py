"""What is counted and measured under Karpenter's names."""
