"""What is published as Kubernetes Events: one function per sentence (EVT-1 to EVT-14)."""
