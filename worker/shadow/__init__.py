"""What a worker beside Karpenter would have decided, and what Karpenter did: two ways, compared."""
