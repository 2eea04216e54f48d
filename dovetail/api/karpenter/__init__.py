"""The kinds of karpenter.sh, and CapacityBuffer."""
