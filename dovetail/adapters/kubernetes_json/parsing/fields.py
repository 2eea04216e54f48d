"""The pieces that nodes, claims and pools share: conditions and the reference to a NodeClass.

Labels and annotations are kept as the decoded JSON gave them: nobody writes to them. The trap avoided: `null` where the
API server leaves a field out; both mean absent here.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dovetail.adapters.kubernetes_json.parsing.times import optional_time
from dovetail.model.nodes import Condition, NodeClassRef

Json = Mapping[str, Any]


def conditions(raw: Sequence[Json] | None) -> tuple[Condition, ...]:
    """status.conditions."""
    return tuple(
        [
            _condition(
                c.get("type") or "",
                c.get("status") or "",
                c.get("reason") or "",
                c.get("message") or "",
                c.get("lastTransitionTime"),
                c.get("observedGeneration") or 0,
            )
            for c in raw or ()
        ]
    )


@lru_cache(maxsize=65536)
def _condition(kind: str, status: str, reason: str, message: str, changed: str | None, generation: int) -> Condition:
    """Kept, because nodes that came up together say the same, and because each is read again at every heartbeat."""
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        changed=optional_time(changed) or 0.0,
        generation=generation,
    )


def node_class(raw: Json | None) -> NodeClassRef:
    """spec.nodeClassRef."""
    ref = raw or {}
    return _reference(ref.get("group") or "", ref.get("kind") or "", ref.get("name") or "")


@lru_cache(maxsize=1024)
def _reference(group: str, kind: str, name: str) -> NodeClassRef:
    return NodeClassRef(group=group, kind=kind, name=name)
