"""What pods require of a node, and nodes of pods: requirements, taints, selectors, ports, devices."""
