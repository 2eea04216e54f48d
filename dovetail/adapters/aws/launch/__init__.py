"""From a NodeClaim to an instance: what is bought, and how."""
