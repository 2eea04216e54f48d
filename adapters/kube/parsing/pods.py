"""A Pod of the API becomes a core.model Pod.

Asked by the watch-fed cache for every pod event and by `explain` for recorded snapshots: it runs for 100,000 pods at a
list, so the plain pod (containers with requests and nothing else) takes a short way, and a fault is attributed to its
field only after it happened.
"""

from collections.abc import Mapping
from typing import Any, Final

from adapters.kube.parsing.errors import RAW_FAULTS, UnreadableObject, blame
from adapters.kube.parsing.quick import draft_of
from adapters.kube.parsing.requests import pod_requests
from adapters.kube.parsing.selectors import parse_owners
from adapters.kube.parsing.shapes import parse_shape
from adapters.kube.parsing.times import optional_time, parse_time
from core.model import names
from core.model.pods import Pod
from core.model.resources import Resources, parse_amount

Raw = Mapping[str, Any]

_PodDraft: Final = draft_of(Pod)
_BY_TEXT: Final[dict[tuple[tuple[str, object], ...], Resources]] = {}  # as written -> amounts
_BY_AMOUNT: Final[dict[tuple[tuple[str, int], ...], Resources]] = {}
_MOST_REQUESTS: Final = 100_000
# Annotations that a rule reads beside do-not-disrupt and the deletion cost (S-213).
_READ_ANNOTATIONS: Final = (names.FAKE_POD,)


def _interned(requests: dict[str, int]) -> Resources:
    if len(_BY_AMOUNT) >= _MOST_REQUESTS:
        _BY_AMOUNT.clear()
    return _BY_AMOUNT.setdefault(tuple(sorted(requests.items())), requests)


def _parse_requests(raw: Raw, spec: Raw, status: Raw) -> Resources:
    """The requests, one shared object for all pods that ask for the same."""
    containers = spec["containers"]
    if (
        len(containers) != 1
        or "initContainers" in spec
        or "overhead" in spec
        or "resources" in spec
        or "containerStatuses" in status
    ):
        return _interned(pod_requests(raw))
    wanted = (containers[0].get("resources") or {}).get("requests") or {}
    key = tuple(wanted.items())
    requests = _BY_TEXT.get(key)
    if requests is None:
        if len(_BY_TEXT) >= _MOST_REQUESTS:
            _BY_TEXT.clear()
        amounts = {name: parse_amount(name, text) for name, text in wanted.items()}
        amounts["pods"] = 1
        requests = _BY_TEXT[key] = _interned(amounts)
    return requests


def _conditions(status: Raw) -> tuple[bool, bool | None]:
    """Whether the scheduler gave up on it (S-20: whatever the status says), and whether it is ready."""
    unschedulable, ready = False, None
    for condition in status.get("conditions") or ():
        kind = condition["type"]
        if kind == "PodScheduled":
            unschedulable = condition.get("reason") == "Unschedulable"
        elif kind == "Ready":
            ready = {"True": True, "False": False}.get(condition.get("status"))
    return unschedulable, ready


def _build(raw: Raw) -> Pod:
    metadata, spec = raw["metadata"], raw["spec"]
    status = raw.get("status") or {}
    annotations = metadata.get("annotations")
    unschedulable, ready = _conditions(status)
    created, deleted = metadata.get("creationTimestamp"), metadata.get("deletionTimestamp")
    started = status.get("startTime")
    read = {key: annotations[key] for key in _READ_ANNOTATIONS if key in annotations} if annotations else None
    draft = _PodDraft(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        shape=parse_shape(metadata, spec),
        requests=_parse_requests(raw, spec, status),
        created=parse_time(created) if created else 0.0,
        resource_version=metadata.get("resourceVersion") or "",
        node_name=spec.get("nodeName") or "",
        phase=status.get("phase") or "Pending",
        deleting_since=parse_time(deleted) if deleted else None,
        grace_seconds=spec.get("terminationGracePeriodSeconds"),
        started=parse_time(started) if started else None,
        ready=ready,
        unschedulable=unschedulable,
        nominated_node=status.get("nominatedNodeName") or "",
        owners=parse_owners(metadata),
        priority=spec.get("priority"),
        do_not_disrupt=annotations.get(names.DO_NOT_DISRUPT) if annotations else None,
        deletion_cost=annotations.get(names.POD_DELETION_COST) if annotations else None,
        annotations=read or None,
    )
    draft.__class__ = Pod
    pod: Pod = draft
    return pod


def parse_pod(raw: Raw) -> Pod:
    """The pod, or UnreadableObject that names it and the field."""
    try:
        return _build(raw)
    except RAW_FAULTS:
        raise blame(
            "Pod",
            raw,
            {
                "metadata": lambda pod: (pod["metadata"]["name"], parse_owners(pod["metadata"])),
                "metadata timestamps": lambda pod: [
                    optional_time(pod["metadata"].get(field)) for field in ("creationTimestamp", "deletionTimestamp")
                ],
                "spec": lambda pod: pod["spec"]["containers"],
                "spec resources": lambda pod: pod_requests(pod),
                "spec (affinity, tolerations, spread, ports, volumes)": lambda pod: parse_shape(
                    pod["metadata"], pod["spec"]
                ),
                "status": lambda pod: (
                    _conditions(pod.get("status") or {}),
                    optional_time((pod.get("status") or {}).get("startTime")),
                ),
            },
        ) from None


__all__ = ["UnreadableObject", "parse_pod"]
