"""spec.kubelet: its checks, and the formulas that stand for numbers in it (AWS-24)."""
