"""Clusters as Karpenter leaves them in mid-flight: loaded as they were recorded, taken over, judged by what came out."""
