"""Where the pods of a node would go, and what that would cost or save."""
