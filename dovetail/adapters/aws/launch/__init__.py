"""From a NodeClaim to an instance: which types and offerings a fleet is asked for, and the launch itself."""
