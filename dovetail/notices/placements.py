"""The notices of one pass: where pods are expected, why others found no place, which NodePools have no types left."""

from collections.abc import Iterator
from dataclasses import replace

from dovetail.model.notice import Notice
from dovetail.model.placements import Placement
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.notices.about import notice_about
from dovetail.notices.decisions import no_compatible_types
from dovetail.notices.faults import unjudged_notices
from dovetail.notices.publishable import publishable
from dovetail.notices.refusal_words import why

FAILED_WINDOW = 300.0  # PLC-226


def placement_notices(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """All notices of one pass: PLC-225 for nodes that stand, PLC-226, PLC-227, and what could not be judged."""
    yield from refusal_notices(placement)
    yield from _nominations(snapshot, placement)
    for empty in placement.empty_pools:
        yield publishable(snapshot, no_compatible_types(empty.pool, empty.because_of_min_values))
    yield from unjudged_notices(placement.unjudged)


def _nominations(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """PLC-225: where a pod is expected that needs no new node; for a new one it is said when the claim is made."""
    if not placement.existing:
        return
    for name, pods in placement.existing.items():
        node = snapshot.nodes.get(name)
        paired = None if node is None else snapshot.pairing.claim_of(node)
        claim = name if node is None else paired.name if paired is not None else None
        places = [f"nodeclaim/{claim}"] if claim else []
        places += [f"node/{name}"] if node is not None else []
        message = f"Pod should schedule on: {', '.join(places)}"
        for pod in pods:
            if not pod.node_name:
                yield notice_about(pod, "Nominated", message)


def refusal_notices(placement: Placement) -> Iterator[Notice]:
    """PLC-226: for each pod that found no place, or that takes no part."""
    for refused in placement.refused:
        if not refused.waits_for_reservation:
            yield _failed(refused.pod, f"Failed to schedule pod, {why(refused)}")
    for ignored in placement.ignored:
        if not ignored.silent:
            yield _failed(ignored.pod, f"Failed to schedule pod, {ignored.why}")


def _failed(pod: Pod, message: str) -> Notice:
    return replace(notice_about(pod, "FailedScheduling", message, "Warning"), window=FAILED_WINDOW)
