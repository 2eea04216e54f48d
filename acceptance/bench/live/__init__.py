"""The product on a real control plane, timed by the API server's audit log."""
