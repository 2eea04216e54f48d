"""What restricts where a pod may go."""
