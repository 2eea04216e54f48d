"""A NodeOverlay: a person's correction of prices and capacities (API-17).

The parser judges whether its text can be used, since that needs the rules of the API (API-25).
"""

from dataclasses import dataclass, field

from dovetail.model.nodes import Condition
from dovetail.model.pods import Expression
from dovetail.model.values.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOverlay:
    """One overlay. `price` replaces a price, or changes it if it begins with a sign; empty leaves it alone."""

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created: float = 0.0
    requirements: tuple[Expression, ...] = ()
    price: str = ""
    capacity: Resources = field(default_factory=dict)
    weight: int = 0
    fault: str = ""  # why it cannot be used, if it cannot
    conditions: tuple[Condition, ...] = ()
