"""What a NodePool remembers in its own annotations, so that it survives restarts."""
