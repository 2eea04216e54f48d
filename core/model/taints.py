"""A taint on a node, a claim or a pool.

Asked by placement (may this pod go there?), by marking and by registration. The rules of toleration (S-80) stand here
beside the thing that they judge.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """One taint; an absent value is the empty string."""

    key: str
    effect: str
    value: str = ""
