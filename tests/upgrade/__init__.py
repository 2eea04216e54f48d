"""The drill: workers of the previous version and of this one take each other's place while everything is in flight."""
