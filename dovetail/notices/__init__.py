"""The notices: what is published as Kubernetes Events, one function per sentence (V-1 to V-14)."""
