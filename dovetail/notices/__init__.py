"""What people are told, as Kubernetes Events: one builder per sentence (V-1 to V-14)."""
