"""A day in fast motion: what a cluster costs and disturbs under each policy, by the product's own decisions."""

from typing import Final

NAME: Final = "day_12_nodes"  # the short one of `make bench`
