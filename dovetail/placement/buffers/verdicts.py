"""What a pass came to for each CapacityBuffer, and what it came to for everybody else (S-213, S-214).

Virtual pods make claims, and that is all: a pass is split here into what buffers are told and what is said, counted and
nominated for real pods.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from dovetail.model.placements import Placement
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.virtual_pods import buffer_of, is_virtual, virtual_pods

Verdict = Literal["FitsExistingCapacity", "RequiresNewCapacity"]


def verdicts(snapshot: Snapshot, placement: Placement) -> dict[str, Verdict]:
    """S-214, by buffer: whether all its room stands. A buffer of which nothing was seen is not among them."""
    standing = {buffer_of(pod) for pods in placement.existing.values() for pod in pods if is_virtual(pod)}
    missing: list[Pod] = [*virtual_pods(snapshot).aside, *(refused.pod for refused in placement.refused)]
    missing += [pod for node in placement.new for pod in node.pods]
    lacking = {buffer_of(pod) for pod in missing if is_virtual(pod)}
    found: dict[str, Verdict] = dict.fromkeys(standing, "FitsExistingCapacity")
    return found | dict.fromkeys(lacking, "RequiresNewCapacity")


def for_real_pods(placement: Placement) -> Placement:
    """S-213: the same without virtual pods. New nodes stay, whoever they are for."""
    existing = {name: real(pods) for name, pods in placement.existing.items()}
    return replace(
        placement,
        new=tuple(replace(node, pods=real(node.pods)) for node in placement.new),
        existing={name: pods for name, pods in existing.items() if pods},
        refused=tuple(refused for refused in placement.refused if not is_virtual(refused.pod)),
        ignored=tuple(ignored for ignored in placement.ignored if not is_virtual(ignored.pod)),
    )


def real(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Those that are not virtual."""
    return tuple([pod for pod in pods if not is_virtual(pod)])
