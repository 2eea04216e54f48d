"""Texts that anybody may have written: read, quoted and remembered within bounds."""
