"""What writes the generated pages of the documentation; it is compared with what runs by tests."""
