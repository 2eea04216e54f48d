"""What is said to people: a Kubernetes Event before it is published."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A Kubernetes Event for people. Same reason, object and `distinct` within `window` seconds is said once (V-0)."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    type: Literal["Normal", "Warning"] = "Normal"
    reason: str
    message: str
    distinct: str = ""
    window: float = 120.0
