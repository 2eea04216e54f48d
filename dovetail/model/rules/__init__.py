"""What people say in objects about when and how nodes may leave: DisruptionPolicies, Freezes, NodeRollouts."""
