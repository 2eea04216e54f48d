"""Requirements: which values of a label a node may have.

Asked by placement for pods, pools, instance types and offerings. A requirement is a set of values in one of two shapes,
a finite set or the complement of one, with optional inclusive integer bounds and an optional minimum of distinct values
(S-33 to S-49).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Finite: the values themselves (none: DoesNotExist). Complement: every value but these (none: Exists)."""

    key: str
    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None
