"""The simulated API server: what it stores, fills in and refuses."""
