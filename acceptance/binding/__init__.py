"""What becomes of an answer when the kube-scheduler binds its pods, nominated to the node meant for them or not."""
