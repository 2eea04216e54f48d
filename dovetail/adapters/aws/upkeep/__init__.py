"""Keeps EC2NodeClasses resolved, validated and, when deleted, cleaned up (sections 3 and 9 of the rules)."""
