"""What a pod asks of a node, and what a node asks of pods: requirements, taints, selectors, ports, devices."""
