"""A notice: a Kubernetes Event for people, before it is published."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice about one object. It is published at most once in `window` seconds (EVT-0).

    Two notices are the same if object, reason and `distinct` are.
    """

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    type: Literal["Normal", "Warning"] = "Normal"
    reason: str
    message: str
    distinct: str = ""
    window: float = 120.0
