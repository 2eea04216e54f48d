"""How can a frozen object be made at the price of an ordinary one?

Asked by the parsers of pods, nodes and claims, which make 100,000 of them at a list. A frozen dataclass sets each
field through `object.__setattr__`: for the twenty fields of a pod that is a third of the whole parse. A draft with the
same slots that is not frozen is filled instead, and becomes the frozen class before anybody else sees it. The trap
avoided: thawing the model itself for the sake of one caller.
"""

from dataclasses import field, fields, make_dataclass
from typing import Any


def draft_of(frozen: type) -> Any:
    """A class with the fields of a frozen slotted dataclass; set `__class__` of what it makes to that class."""
    same = [(item.name, Any, field(kw_only=True)) for item in fields(frozen)]
    return make_dataclass(f"{frozen.__name__}Draft", same, slots=True, eq=False)
