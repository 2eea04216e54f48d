"""From a claim to a node that is ready for pods; the conditions of all objects; what is unfinished."""
