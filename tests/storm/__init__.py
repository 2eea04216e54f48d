"""Faults that last minutes while people go on with their day; judged by the cloud's and the API server's records."""
