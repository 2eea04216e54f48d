"""A real control plane and an AWS server for development and tests; no product code imports it."""
