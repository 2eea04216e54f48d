"""How can a frozen object be made at the price of an ordinary one?

A frozen dataclass sets each field through `object.__setattr__`, and twenty keywords are dear to pass: for a pod that is
a third of the whole parse. An empty draft with the same slots is filled field by field instead, and becomes the frozen
class before anybody else sees it. The trap avoided: thawing the model itself for the sake of one caller. A field that
is forgotten is no default: tests look at every field of what is made so.
"""

from dataclasses import fields
from typing import Any


def draft_of(frozen: type) -> Any:
    """A class with the slots of a frozen slotted dataclass; set `__class__` of what it makes to that class."""
    return type(f"{frozen.__name__}Draft", (), {"__slots__": tuple(item.name for item in fields(frozen))})
