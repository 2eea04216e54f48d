"""What disruption keeps up to date on NodeClaims: conditions, times, hashes."""
