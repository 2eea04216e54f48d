"""What is told of a disruption as a trace: who is part of which, and when it began and ended."""
