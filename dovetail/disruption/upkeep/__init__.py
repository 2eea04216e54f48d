"""What disruption keeps on NodeClaims: conditions, times, hashes."""
