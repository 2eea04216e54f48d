"""Answers: what the ports ask, given by Kubernetes, by a cloud or by an embedded world."""
