"""What Karpenter's CustomResourceDefinitions say, as facts: a line for each field."""
