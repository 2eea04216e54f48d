"""Clusters as Karpenter leaves them in mid-flight: loaded as recorded, taken over, judged."""
