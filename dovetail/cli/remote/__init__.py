"""Answers from a worker, through the API server's proxy, with nothing but the person's own kubeconfig.

Only the standard library and YAML are loaded: the official client alone would take longer than the answer.
"""
