"""Karpenter's own end-to-end suites against Dovetail: `make peer`."""
