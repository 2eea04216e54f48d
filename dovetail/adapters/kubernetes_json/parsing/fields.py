"""The parts that nodes, claims and pools share: conditions and the reference to a NodeClass.

Labels and annotations are kept as they were decoded, because nothing here changes them. A `null` field and a missing
field mean the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dovetail.adapters.kubernetes_json.parsing.reading import number_of, text_of
from dovetail.model.nodes import Condition, NodeClassRef
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.remembering import MEGABYTE, remembered
from dovetail.model.values.time import optional_time


class _Written(NamedTuple):
    """A condition as written: the key under which it is remembered."""

    type: str
    status: str
    reason: str
    message: str
    changed: str | None
    generation: int


def conditions(raw: Sequence[ReadOnlyJson] | None) -> tuple[Condition, ...]:
    """status.conditions."""
    return tuple(
        [
            _condition(
                _Written(
                    c.get("type") or "",
                    c.get("status") or "",
                    c.get("reason") or "",
                    c.get("message") or "",
                    c.get("lastTransitionTime"),
                    c.get("observedGeneration") or 0,
                )
            )
            for c in raw or ()
        ]
    )


@remembered(16 * MEGABYTE)
def _condition(written: _Written) -> Condition:
    """Remembered, because nodes that came up together have equal ones, and each is read again at every heartbeat."""
    return Condition(
        type=text_of(written.type),
        status=text_of(written.status),
        reason=text_of(written.reason),
        message=text_of(written.message),
        changed=optional_time(written.changed) or 0.0,
        generation=number_of(written.generation),
    )


def node_class(raw: ReadOnlyJson | None) -> NodeClassRef:
    """spec.nodeClassRef."""
    ref = raw or {}
    return _reference(ref.get("group") or "", ref.get("kind") or "", ref.get("name") or "")


@remembered(MEGABYTE)
def _reference(group: str, kind: str, name: str) -> NodeClassRef:
    return NodeClassRef(group=text_of(group), kind=text_of(kind), name=text_of(name))
