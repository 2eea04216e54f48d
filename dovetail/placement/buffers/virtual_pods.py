"""What room does each CapacityBuffer ask for, as pods that do not exist (PLC-211, PLC-212)?

A buffer names a PodTemplate or a workload, and says how many of its pods there must be room for. It becomes that many
virtual pods, which wait for a node like any pending pod. They are made anew for every snapshot, so that a change of the
template leaves no old ones behind.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from dovetail.model import names
from dovetail.model.objects.buffers import CapacityBuffer, WorkloadRef
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.workloads import PodSource
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.digits import integer
from dovetail.model.values.resources import PODS, Resources

ACTIVE: Final = "buffer.x-k8s.io/active-capacity"  # buffers of another strategy are not for us
MOST_PODS: Final = 10_000  # of one buffer; limits that would hold a tiny pod a billion times must not stop the planner
MOST_OF_ALL: Final = (
    50_000  # of all buffers: each is an object in every pass and answer, a million took 42 s and 0.9 GiB
)
_BEYOND: Final = f"all buffers would ask for more than {MOST_OF_ALL}; namespaces come in turn, by what they have so far"
PRIORITY: Final = -(2**31)

Reason = Literal["PodTemplateNotFound", "ScalableRefNotFound", "ResolutionFailed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Room for `replicas` pods like this one."""

    pod: Pod
    replicas: int
    generation: int  # of the PodTemplate or workload
    kind: Literal["resolved"] = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """Why the requested room is unknown, naming the field and the object."""

    reason: Reason
    message: str
    kind: Literal["unresolved"] = "unresolved"


def ours(snapshot: Snapshot) -> Iterator[CapacityBuffer]:
    """The buffers that Dovetail makes room for, by namespace and name."""
    for key in sorted(snapshot.buffers):
        buffer = snapshot.buffers[key]
        if buffer.strategy in ("", ACTIVE) and not buffer.deleting:
            yield buffer


def resolve(buffer: CapacityBuffer, snapshot: Snapshot) -> Resolved | Unresolved:
    """What the buffer's pods are like, and how many there are (PLC-211)."""
    if buffer.fault:
        return _failed(buffer.fault)
    if buffer.template:
        place = f'spec.podTemplateRef: PodTemplate "{buffer.template}"'
        found = snapshot.pod_templates.get(f"{buffer.namespace}/{buffer.template}")
        missing: Reason = "PodTemplateNotFound"
    elif buffer.workload is not None:
        place = f'spec.scalableRef: {buffer.workload.kind} "{buffer.workload.name}"'
        if buffer.workload.group not in ("", "apps") or buffer.workload.kind not in _WORKLOADS:
            return _failed(f"{place} is none of {', '.join(_WORKLOADS)} of the group apps")
        found = _workload(buffer.namespace, buffer.workload, snapshot)
        missing = "ScalableRefNotFound"
    else:
        return _failed("spec: neither podTemplateRef nor scalableRef is set")
    if found is None:
        return Unresolved(reason=missing, message=f"{place} does not exist in namespace {buffer.namespace}")
    if found.pod is None:
        return _failed(f"{place} cannot be read: {found.fault}")
    count = size(buffer, found.replicas, found.pod.requests)
    if count > MOST_PODS:
        return _failed(f"spec: {count} pods are more than the {MOST_PODS} that a buffer may have")
    return Resolved(pod=found.pod, replicas=count, generation=found.generation)


def resolutions(
    snapshot: Snapshot, purpose: str, judging: Judging
) -> Sequence[tuple[CapacityBuffer, Resolved | Unresolved]]:
    """What each buffer is resolved to, without those that cannot be judged. `purpose`: what it is asked for."""
    found = [(buffer, judging.judge(buffer, purpose, resolve, buffer, snapshot)) for buffer in ours(snapshot)]
    return within_all([(buffer, each) for buffer, each in found if not isinstance(each, Unjudged)])


def within_all(
    found: Sequence[tuple[CapacityBuffer, Resolved | Unresolved]],
) -> Sequence[tuple[CapacityBuffer, Resolved | Unresolved]]:
    """The same, without room for more pods than all buffers may have together: namespaces come in turn, by the pods
    that they have so far, so that the many buffers of one leave the others theirs."""
    pods: Counter[str] = Counter()
    turns: list[tuple[int, int, int]] = []
    for number, (buffer, each) in enumerate(found):
        if isinstance(each, Resolved):
            pods[buffer.namespace] += each.replicas
            turns.append((pods[buffer.namespace], number, each.replicas))
    if pods.total() <= MOST_OF_ALL:
        return found
    left, beyond = MOST_OF_ALL, dict[int, Unresolved]()
    for _, number, replicas in sorted(turns):
        if replicas <= left:
            left -= replicas
        else:
            beyond[number] = _failed(f"spec: with these {replicas} pods {_BEYOND}")
    return [(buffer, beyond.get(number, each)) for number, (buffer, each) in enumerate(found)]


_WORKLOADS: Final = ("Deployment", "StatefulSet", "ReplicaSet")


def _failed(message: str) -> Unresolved:
    return Unresolved(reason="ResolutionFailed", message=message)


def _workload(namespace: str, ref: WorkloadRef, snapshot: Snapshot) -> PodSource | None:
    if ref.kind == "Deployment":
        deployment = snapshot.deployments.get(f"{namespace}/{ref.name}")
        return None if deployment is None else deployment.pods
    found = snapshot.selector_sources.get(f"{ref.kind}/{namespace}/{ref.name}")
    return None if found is None else found.pods


def size(buffer: CapacityBuffer, workload_replicas: int, requests: Resources) -> int:
    """The greater of the numbers asked for, within the limits; the limits alone if none is asked for (PLC-211)."""
    asked = [] if buffer.replicas is None else [buffer.replicas]
    if buffer.percentage is not None and buffer.workload is not None and workload_replicas > 0:
        asked.append(-(-workload_replicas * buffer.percentage // 100))  # rounded up: there is no half pod
    room = [
        limit // requests[name] for name, limit in buffer.limits.items() if name != PODS and requests.get(name, 0) > 0
    ]
    most = [max(asked)] if asked else []
    return max(min([*most, *room], default=0), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualPods:
    """The virtual pods of a snapshot; `promised`: those planned onto a claim that is not launched yet."""

    pending: tuple[Pod, ...] = ()
    promised: tuple[Pod, ...] = ()


def virtual_pods(snapshot: Snapshot, judging: Judging | None = None) -> VirtualPods:
    """As many virtual pods for each buffer as it asks for (PLC-212). They are alike, so those with a claim are only
    counted."""
    pending: list[Pod] = []
    promised: list[Pod] = []
    coming, judging = on_their_way(snapshot), judging or Judging()
    for buffer, found in resolutions(snapshot, "placement", judging):
        if isinstance(found, Resolved):
            made = [*_copies(buffer, found, snapshot.now)]
            waiting = max(len(made) - coming[buffer.uid], 0)
            pending += made[:waiting]
            promised += made[waiting:]
    return VirtualPods(pending=tuple(pending), promised=tuple(promised))


def on_their_way(snapshot: Snapshot) -> Counter[str]:
    """The number of virtual pods whose planned claim is not launched yet, by buffer UID."""
    found: Counter[str] = Counter()
    if snapshot.buffers:
        for claim in snapshot.claims.values():
            if not claim.provider_id and claim.deleting_since is None:
                found.update(planned_for(claim.annotations.get(names.PLANNED_BUFFERS, "")))
    return found


def planned_for(text: str) -> dict[str, int]:
    """The annotation, which is a list of <buffer uid>=<number>; a part that cannot be read counts nothing."""
    pairs = (part.partition("=") for part in text.split(","))
    counts = {uid: integer(count) or 0 for uid, _, count in pairs if uid}
    return {uid: count for uid, count in counts.items() if count > 0}


def _copies(buffer: CapacityBuffer, found: Resolved, now: float) -> Iterator[Pod]:
    """The pods. They are younger than every real pod, so that a real one that asks for as much is tried first."""
    annotations = {
        names.FAKE_POD: "true",
        names.BUFFER_NAME: buffer.name,
        names.BUFFER_NAMESPACE: buffer.namespace,
    }
    first = replace(found.pod, unschedulable=True, priority=PRIORITY, created=now, annotations=annotations)
    for number in range(1, found.replicas + 1):
        yield replace(first, name=f"capacity-buffer-{buffer.name}-{number}", uid=f"{buffer.uid}-{number}")


def is_virtual(pod: Pod) -> bool:
    """Whether the pod stands for room that a buffer asks for."""
    return pod.annotations is not None and pod.annotations.get(names.FAKE_POD) == "true"


def buffer_of(pod: Pod) -> str:
    """namespace/name of a virtual pod's buffer."""
    annotations = pod.annotations or {}
    return f"{annotations.get(names.BUFFER_NAMESPACE, '')}/{annotations.get(names.BUFFER_NAME, '')}"


def buffer_uid(pod: Pod) -> str:
    return pod.uid.rpartition("-")[0]
