"""What becomes of an answer when the kube-scheduler binds its pods: nobody binds a pod to the node planned for it."""
