"""`dovetail shadow`: what Dovetail would have decided beside Karpenter, and what Karpenter did."""
