"""Values without an identity: amounts, moments, durations, hashes, and how each is written and read."""
