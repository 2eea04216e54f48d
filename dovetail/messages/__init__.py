"""What crosses Temporal: what workflows and steps are given and answer. Names and fields stay, for histories hold them."""
