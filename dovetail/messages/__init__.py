"""What crosses Temporal: what workflows and steps are given and answer. Histories hold these names and fields."""
