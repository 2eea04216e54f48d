"""Dovetail: the nodes of a Kubernetes cluster, bought, replaced and removed by durable workflows."""
