"""Whether a node may begin to leave now: the rules of people against the cluster at one moment."""
