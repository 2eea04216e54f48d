"""A real control plane and an AWS server for development and tests: built, started, stopped.

Product code imports nothing from here (an import contract says so). What lies here is asked for by the tests, by
`make cluster` and by `make up`. The trap it avoids: a test that passes against our own idea of Kubernetes or AWS.
"""
