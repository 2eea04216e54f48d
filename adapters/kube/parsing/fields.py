"""The pieces that nodes, claims and pools share: conditions and the reference to a NodeClass.

Asked by their parsers. Labels and annotations are kept as the decoded JSON gave them: nobody writes to them. The trap
avoided: `null` where the API server leaves a field out; both mean absent here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.kube.parsing.times import optional_time
from core.model.nodes import Condition, NodeClassRef

Json = Mapping[str, Any]


def conditions(raw: Sequence[Json] | None) -> tuple[Condition, ...]:
    """status.conditions."""
    return tuple(
        [
            Condition(
                type=c.get("type") or "",
                status=c.get("status") or "",
                reason=c.get("reason") or "",
                message=c.get("message") or "",
                changed=optional_time(c.get("lastTransitionTime")) or 0.0,
                generation=c.get("observedGeneration") or 0,
            )
            for c in raw or ()
        ]
    )


def node_class(raw: Json | None) -> NodeClassRef:
    """spec.nodeClassRef."""
    ref = raw or {}
    return NodeClassRef(group=ref.get("group") or "", kind=ref.get("kind") or "", name=ref.get("name") or "")
