"""Planning disruptions, marking nodes, waiting for replacements, deleting."""
