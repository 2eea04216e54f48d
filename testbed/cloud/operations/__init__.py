"""The AWS operations that are answered here, by subject."""
