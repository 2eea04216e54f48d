"""Recorded results, compared with our engines.

Each module named kind_*.py knows some kinds of file: its KINDS maps a file's stem to a function that takes one case and
returns None where ours equals the recorded result, or one line that says where it differs.
"""
