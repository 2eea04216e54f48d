"""Keeping conditions, statuses and labels of objects true."""
