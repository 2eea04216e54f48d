"""Two records of one case set beside each other: what differs after the recording's own rules of comparison."""
