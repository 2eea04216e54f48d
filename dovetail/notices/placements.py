"""The notices of one pass: where pods are expected, why others found no place, which NodePools have no types left."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from dovetail.model.places.placements import Placement
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.listing import shown
from dovetail.notices.about import STANDING_WINDOW, notice_about
from dovetail.notices.decisions import no_compatible_types
from dovetail.notices.faults import MOST, unjudged_notices
from dovetail.notices.notice import Notice
from dovetail.notices.publishable import publishable
from dovetail.notices.refusal_words import why

FAILED_WINDOW = 300.0  # PLC-226
MOST_NAMED = 10  # DaemonSets in one message


def placement_notices(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """All notices of one pass: PLC-225 for existing nodes, PLC-226, PLC-227, and what could not be judged."""
    yield from refusal_notices(placement)
    yield from _crowded_pools(snapshot, placement)
    yield from _oversized(snapshot, placement)
    yield from _nominations(snapshot, placement)
    for empty in placement.empty_pools:
        yield publishable(snapshot, no_compatible_types(empty))
    yield from unjudged_notices(placement.unjudged)


def _nominations(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """PLC-225: where a pod that needs no new node is expected; for a new node this is published with its claim."""
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
    """PLC-226: for each pod that found no place, or takes no part."""
    for refused in placement.refused:
        if not refused.waits_for_reservation:
            yield _failed(refused.pod, f"Failed to schedule pod, {why(refused)}")
    for ignored in placement.ignored:
        if not ignored.silent:
            # Published even if the pod has just had another notice, because only this can be fixed.
            yield replace(
                _failed(ignored.pod, f"Failed to schedule pod, {ignored.why}"),
                distinct="refused" if ignored.earlier_claim == "refused" else "",
            )


def _crowded_pools(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """One for each pool whose DaemonSets keep pods from fitting: for an operator to fix, not for the pods' authors."""
    crowded: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for refused in placement.refused:
        for pool in refused.pools:
            if pool.daemon_sets:
                crowded.setdefault((pool.pool, pool.daemon_sets), []).append(refused.pod.key)
    for (name, daemon_sets), pods in sorted(crowded.items()):
        if name in snapshot.pools:
            yield replace(_crowded(snapshot.pools[name], daemon_sets, pods), window=STANDING_WINDOW)


def _crowded(pool: NodePool, daemon_sets: tuple[str, ...], pods: list[str]) -> Notice:
    named = shown(daemon_sets, MOST_NAMED)
    whom = f"pod {pods[0]}" if len(pods) == 1 else f"{len(pods)} pods, {min(pods)} among them,"
    message = f"No instance type holds {whom} beside DaemonSets {named}; without these some would"
    return notice_about(pool, "DaemonSetsLeaveNoRoom", message, "Warning", distinct=named)


def _oversized(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """PLQ-69: one for each DaemonSet that counts on no node of some pools, for its author to fix."""
    pools: dict[str, list[str]] = {}
    for name, pool in placement.oversized:
        pools.setdefault(name, []).append(pool)
    keys = {f"{item.namespace}/{item.name}": item for item in snapshot.daemon_sets.values()} if pools else {}
    for name, where in islice(pools.items(), MOST):
        if item := keys.get(name):
            named = ", ".join(where[:MOST_NAMED])
            message = (
                f"No instance type of NodePools {named} holds its pod, within their limits and beside the DaemonSets "
                "of higher priority or older: no node of theirs keeps room for it"
            )
            yield replace(notice_about(item, "FitsNoInstanceType", message, "Warning"), window=STANDING_WINDOW)


def _failed(pod: Pod, message: str) -> Notice:
    return replace(notice_about(pod, "FailedScheduling", message, "Warning"), window=FAILED_WINDOW)
