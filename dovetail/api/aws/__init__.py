"""EC2NodeClass of karpenter.k8s.aws."""
