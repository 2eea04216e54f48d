"""What is known of a pod that cannot be read: name, node, phase, deletion and owners.

An ended pod holds nothing, whatever else it contains: the kubelet rejects a pod that it cannot read, and such a pod
stays Failed. So these few fields are read independently of errors in the rest.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_owners
from dovetail.model.pods import Pod, PodShape
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.remembering import MEGABYTE, remembered
from dovetail.model.values.time import optional_time

T = TypeVar("T")


def outline_of(raw: Any) -> Pod:
    """The pod without a shape and without requests; an unreadable field among these counts as absent."""
    metadata, spec, status = (_part(raw, name) for name in ("metadata", "spec", "status"))
    return Pod(
        name=_text(metadata, "name"),
        uid=_text(metadata, "uid"),
        shape=_shape_in(_text(metadata, "namespace")),
        requests={},
        node_name=_text(spec, "nodeName"),
        phase=_text(status, "phase") or "Pending",
        deleting_since=_read(lambda: optional_time(metadata.get("deletionTimestamp")), None),
        owners=_read(lambda: parse_owners(metadata), ()),
    )


@remembered(MEGABYTE)
def _shape_in(namespace: str) -> PodShape:
    """One for all, because shapes are compared by identity: a pod that stays equally unreadable has not changed."""
    return PodShape(namespace=namespace, labels={})


def _part(raw: Any, name: str) -> ReadOnlyJson:
    found = raw.get(name) if isinstance(raw, dict) else None
    return found if isinstance(found, dict) else {}


def _text(part: ReadOnlyJson, name: str) -> str:
    found = part.get(name)
    return found if isinstance(found, str) else ""


def _read(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except RAW_FAULTS:
        return otherwise
