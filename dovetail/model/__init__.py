"""What things are: resources, requirements, taints, pods, nodes, pools, claims, offerings, snapshot, plans, reasons."""
