"""What crosses Temporal: sizes, lists of types, what the Scheduler remembers."""
