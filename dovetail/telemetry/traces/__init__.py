"""What a trace says of a disruption: who is part of which, and when it began and ended."""
