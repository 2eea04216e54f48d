"""Dovetail: the nodes of a Kubernetes cluster, launched, replaced and removed by durable workflows."""
