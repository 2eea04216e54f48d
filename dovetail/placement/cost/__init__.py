"""Cheaper answers for the pods of a pass: a policy that is off by default."""
