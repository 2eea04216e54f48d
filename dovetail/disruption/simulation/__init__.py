"""Where the pods of a node would be placed, and what that would cost or save."""
