"""The pieces that several kinds of object share: times, owners, taints, conditions, expressions.

Asked by the parsers of nodes, claims and pools. Labels and annotations are kept as the decoded JSON gave them: nobody
writes to them. The trap avoided: `null` where the API server leaves a field out; both mean absent here.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from core.model.nodes import Condition, NodeClassRef
from core.model.pods import Expression, Owner
from core.model.taints import Taint

Json = Mapping[str, Any]


@lru_cache(maxsize=16384)
def moment(text: str) -> float:
    """An RFC 3339 time as seconds since the epoch."""
    stamp = datetime.fromisoformat(text)
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def moment_or_none(text: str | None) -> float | None:
    """The same for a field that may be absent."""
    return moment(text) if text else None


def owners(raw: Sequence[Json] | None) -> tuple[Owner, ...]:
    """metadata.ownerReferences."""
    return tuple(
        Owner(
            api_version=o.get("apiVersion") or "",
            kind=o.get("kind") or "",
            name=o.get("name") or "",
            uid=o.get("uid") or "",
            controller=bool(o.get("controller")),
        )
        for o in raw or ()
    )


def taints(raw: Sequence[Json] | None) -> tuple[Taint, ...]:
    """spec.taints and spec.startupTaints."""
    return tuple(
        Taint(key=t.get("key") or "", effect=t.get("effect") or "", value=t.get("value") or "") for t in raw or ()
    )


def conditions(raw: Sequence[Json] | None) -> tuple[Condition, ...]:
    """status.conditions."""
    return tuple(
        Condition(
            type=c.get("type") or "",
            status=c.get("status") or "",
            reason=c.get("reason") or "",
            message=c.get("message") or "",
            changed=moment(c["lastTransitionTime"]) if c.get("lastTransitionTime") else 0.0,
            generation=c.get("observedGeneration") or 0,
        )
        for c in raw or ()
    )


def expressions(raw: Sequence[Json] | None) -> tuple[Expression, ...]:
    """spec.requirements of a claim or of a pool's template."""
    return tuple(
        Expression(
            key=e.get("key") or "",
            operator=e.get("operator") or "",
            values=tuple(e.get("values") or ()),
            min_values=e.get("minValues"),
        )
        for e in raw or ()
    )


def node_class(raw: Json | None) -> NodeClassRef:
    """spec.nodeClassRef."""
    ref = raw or {}
    return NodeClassRef(group=ref.get("group") or "", kind=ref.get("kind") or "", name=ref.get("name") or "")
