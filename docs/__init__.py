"""The documentation, and in `tools` what writes its generated pages."""
