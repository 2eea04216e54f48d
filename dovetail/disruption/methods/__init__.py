"""The methods by which nodes are chosen, one module each."""
