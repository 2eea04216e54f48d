"""A Pod of the API becomes a dovetail.model Pod.

Most of a pod is the same in all replicas of its workload. Parsing that part costs far more than recognising its text,
so the result is remembered by the text for a while. Which field is at fault is worked out after reading has failed.

A pod that was read is a real one, whatever its annotations say: virtual pods are never objects of the API.
"""

from collections.abc import Iterable
from typing import Final

import orjson

from dovetail.adapters.kubernetes_json.parsing.errors import RAW_FAULTS, UnreadableObject, blame
from dovetail.adapters.kubernetes_json.parsing.outlines import outline_of
from dovetail.adapters.kubernetes_json.parsing.reading import optional_number, optional_text, text_of
from dovetail.adapters.kubernetes_json.parsing.requests import Amounts, pod_requests
from dovetail.adapters.kubernetes_json.parsing.selectors import parse_owners
from dovetail.adapters.kubernetes_json.parsing.shapes import claims_among, parse_shape
from dovetail.model import names
from dovetail.model.objects.pod_rules import awaits_eviction
from dovetail.model.pods import Owner, Pod, PodShape
from dovetail.model.values.drafts import draft_of
from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.remembering import MEGABYTE, Recent, Shared
from dovetail.model.values.resources import Resources, SharedAmounts
from dovetail.model.values.time import optional_time, parse_time
from dovetail.ports.failures import NotReadable

Common = tuple[PodShape, Resources, tuple[Owner, ...]]

_PodDraft: Final = draft_of(Pod)
_COMMON: Final[Recent[bytes, Common | None]] = Recent(8 * MEGABYTE, times=8)  # by the text that it was read from
_REQUESTS: Final[Shared[tuple[tuple[str, int], ...], SharedAmounts]] = Shared()


def _read_of(containers: Iterable[ReadOnlyJson]) -> list[object]:
    """The parts of containers that are read; images, variables, probes and mounts are not."""
    return [(c.get("name"), c.get("resources"), c.get("ports"), c.get("restartPolicy")) for c in containers]


def _resized(status: ReadOnlyJson, infeasible: bool) -> list[object]:
    """The parts of the status that bear on requests (PLC-73)."""
    return [
        infeasible,
        *(
            [(c.get("name"), c.get("resources"), c.get("allocatedResources")) for c in status.get(field) or ()]
            for field in ("containerStatuses", "initContainerStatuses")
        ),
    ]


def _common(raw: ReadOnlyJson, infeasible: bool) -> Common:
    """The shape, the requests and the owners, which the replicas of a workload share."""
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    read = (
        metadata.get("namespace"),
        metadata.get("labels"),
        metadata.get("ownerReferences"),
        spec.get("affinity"),
        spec.get("topologySpreadConstraints"),
        spec.get("nodeSelector"),
        spec.get("tolerations"),
        spec.get("resourceClaims"),
        claims_among(spec["volumes"]) if "volumes" in spec else None,
        spec.get("overhead"),
        spec.get("resources"),
        _read_of(spec["containers"]),
        _read_of(spec["initContainers"] or ()) if "initContainers" in spec else None,
        _resized(status, infeasible) if "containerStatuses" in status or "initContainerStatuses" in status else None,
    )
    text = orjson.dumps(read)
    common = _COMMON.get(text, None)
    if common is None:
        common = (parse_shape(metadata, spec), _shared(pod_requests(raw)), parse_owners(metadata))
        _COMMON.put(text, common)
    return common


def _shared(requests: Amounts) -> Resources:
    """Pods with equal requests share one object, whatever else differs: placement compares it by identity."""
    return _REQUESTS.one(tuple(sorted(requests.items())), lambda: SharedAmounts(requests))


def _conditions(status: ReadOnlyJson) -> tuple[bool, bool | None, bool]:
    """Whether the scheduler gave up on the pod (by the condition's reason alone, PLC-20), whether it is ready, and
    whether a requested resize is not possible (PLC-73)."""
    unschedulable, ready, infeasible = False, None, False
    for condition in status.get("conditions") or ():
        kind = condition["type"]
        if kind == "PodScheduled":
            unschedulable = condition.get("reason") == "Unschedulable"
        elif kind == "Ready":
            ready = {"True": True, "False": False}.get(condition.get("status"))
        elif kind == "PodResizePending" and condition.get("reason") == "Infeasible":
            infeasible = True
    return unschedulable, ready, infeasible


# Why the kubelet does not start a container; it tries again, and each time waits longer.
_NOT_STARTED: Final = frozenset(
    {
        *("CrashLoopBackOff", "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError"),
    }
)
_RESTARTS: Final = 2  # one may have waited for another to come up


def _is_failing(status: ReadOnlyJson) -> bool:
    """Whether a container of a pod that is not ready cannot be started, or has ended again and again."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in _NOT_STARTED or (container.get("restartCount") or 0) >= _RESTARTS:
                return True
    return False


def _build(raw: ReadOnlyJson) -> Pod:
    metadata, spec = raw["metadata"], raw["spec"]
    status = raw.get("status") or {}
    annotations = metadata.get("annotations")
    created, deleted = metadata.get("creationTimestamp"), metadata.get("deletionTimestamp")
    started = status.get("startTime")
    draft = _PodDraft()
    draft.name = text_of(metadata["name"])
    draft.uid = text_of(metadata.get("uid") or "")
    draft.created = parse_time(created) if created else 0.0
    draft.resource_version = metadata.get("resourceVersion") or ""
    draft.deleting_since = parse_time(deleted) if deleted else None
    draft.node_name = text_of(spec.get("nodeName") or "")
    draft.grace_seconds = optional_number(spec.get("terminationGracePeriodSeconds"))
    draft.priority = optional_number(spec.get("priority"))
    draft.preempts = spec.get("preemptionPolicy") != "Never"
    draft.phase = text_of(status.get("phase") or "Pending")
    draft.started = parse_time(started) if started else None
    draft.nominated_node = text_of(status.get("nominatedNodeName") or "")
    draft.unschedulable, draft.ready, infeasible = _conditions(status)
    draft.failing = not draft.ready and _is_failing(status)
    draft.shape, draft.requests, draft.owners = _common(raw, infeasible)
    draft.do_not_disrupt = draft.disruption_window = None
    draft.deletion_cost = draft.disruption_cost = draft.annotations = None
    if annotations:
        draft.do_not_disrupt = optional_text(annotations.get(names.DO_NOT_DISRUPT))
        draft.disruption_window = optional_text(annotations.get(names.DISRUPTION_WINDOW))
        draft.deletion_cost = optional_text(annotations.get(names.POD_DELETION_COST))
        if names.DO_NOT_EVICT in annotations:
            draft.annotations = {names.DO_NOT_EVICT: ""}
        draft.disruption_cost = optional_text(annotations.get(names.DISRUPTION_COST))
    draft.__class__ = Pod
    pod: Pod = draft
    return pod


def parse_pod(raw: ReadOnlyJson) -> Pod:
    """The pod, or UnreadableObject that names it and the field."""
    try:
        return _build(raw)
    except RAW_FAULTS:
        raise blame(
            "Pod",
            raw,
            {
                "metadata": lambda pod: (text_of(pod["metadata"]["name"]), parse_owners(pod["metadata"])),
                "metadata.annotations": lambda pod: [
                    optional_text((pod["metadata"].get("annotations") or {}).get(key))
                    for key in (
                        names.DO_NOT_DISRUPT,
                        names.DISRUPTION_WINDOW,
                        names.POD_DELETION_COST,
                        names.DISRUPTION_COST,
                    )
                ],
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
                    _is_failing(pod.get("status") or {}),
                    optional_time((pod.get("status") or {}).get("startTime")),
                ),
            },
        ) from None


def pods_that_hold(raws: Iterable[ReadOnlyJson], now: float) -> tuple[Pod, ...]:
    """The pods of a node, as listed live. NotReadable for an unreadable one that still holds the node; ended ones are
    left out."""
    found = []
    for raw in raws:
        try:
            found.append(parse_pod(raw))
        except UnreadableObject as error:
            if awaits_eviction(outline_of(raw), now):
                raise NotReadable(f"{error.kind}/{error.name}", f"{error.field}: {error.message}") from error
    return tuple(found)


__all__ = ["UnreadableObject", "parse_pod", "pods_that_hold"]
