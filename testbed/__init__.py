"""A real control plane and an AWS server for development and tests: built, started, stopped.

Product code imports nothing from here (an import contract says so). The tests, `make cluster` and `make up` use it, so
that nothing passes only against our own idea of Kubernetes or AWS.
"""
