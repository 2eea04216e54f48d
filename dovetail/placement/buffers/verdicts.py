"""What does a placement mean for each CapacityBuffer, and what for real pods (PLC-213, PLC-214)?

Virtual pods cause new nodes and nothing else. A placement is split here into the verdict on each buffer, and the part
for which Events are published, pods are counted and nodes nominated.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from dovetail.model.places.placements import Placement
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.virtual_pods import buffer_of, is_virtual, virtual_pods

BufferVerdict = Literal["FitsExistingCapacity", "RequiresNewCapacity"]


def verdicts(snapshot: Snapshot, placement: Placement) -> dict[str, BufferVerdict]:
    """Whether all of a buffer's room exists, by buffer (PLC-214). Buffers none of whose pods took part are left out."""
    standing = {buffer_of(pod) for pods in placement.existing.values() for pod in pods if is_virtual(pod)}
    missing: list[Pod] = [*virtual_pods(snapshot).promised, *(refused.pod for refused in placement.refused)]
    missing += [pod for node in placement.new for pod in node.pods]
    missing += [ignored.pod for ignored in placement.ignored if ignored.earlier_claim]
    lacking = {buffer_of(pod) for pod in missing if is_virtual(pod)}
    found: dict[str, BufferVerdict] = dict.fromkeys(standing, "FitsExistingCapacity")
    return found | dict.fromkeys(lacking, "RequiresNewCapacity")


def why_held(placement: Placement) -> dict[str, str]:
    """Why no further node is made for a buffer, by buffer."""
    return {buffer_of(i.pod): i.why for i in placement.ignored if i.earlier_claim and is_virtual(i.pod)}


def for_real_pods(placement: Placement) -> Placement:
    """The placement without virtual pods (PLC-213). All new nodes stay."""
    existing = {name: real(pods) for name, pods in placement.existing.items()}
    without = (*(r.pod for r in placement.refused), *(i.pod for i in placement.ignored))
    virtual = {pod.uid for pod in without if is_virtual(pod)}
    return replace(
        placement,
        new=tuple(replace(node, pods=real(node.pods)) for node in placement.new),
        existing={name: pods for name, pods in existing.items() if pods},
        refused=tuple(refused for refused in placement.refused if not is_virtual(refused.pod)),
        ignored=tuple(ignored for ignored in placement.ignored if not is_virtual(ignored.pod)),
        unjudged=tuple(fault for fault in placement.unjudged if fault.uid not in virtual),
    )


def real(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods that are not virtual."""
    return tuple([pod for pod in pods if not is_virtual(pod)])
