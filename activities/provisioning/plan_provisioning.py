"""From a placement to a plan: what provisioning carries out, and what the pods are told.

A plan is cut where it would grow beyond what a history should hold; the rest is planned in the next round, which
follows at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import orjson

from dovetail.messages.plans import ProposedNode, ProvisioningPlan, Refusal, Seen
from dovetail.model.notice import Notice
from dovetail.model.placements import Placement, RefusedPod
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.notices.decisions import no_compatible_types
from dovetail.notices.publishable import publishable
from dovetail.notices.refusal_words import why
from dovetail.placement.buffers.verdicts import for_real_pods
from dovetail.placement.place_pods import Index, place
from dovetail.placement.proposals import proposed_nodes
from dovetail.placement.settings import PlacementSettings

# A payload over 2 MB is refused; these leave room for what travels beside the plan.
MOST_NODES = 100
MOST_BYTES = 200 * 1024
EXAMPLES = 3
FAILED_WINDOW = 300.0  # S-226


def plan_provisioning(
    snapshot: Snapshot, settings: PlacementSettings, should_stop: Callable[[], bool]
) -> tuple[ProvisioningPlan, Placement]:
    """The plan, and the placement that it was made from; of buffers the plan knows only the nodes that they need."""
    placement = place(Index(snapshot, settings), should_stop=should_stop)
    real = for_real_pods(placement)
    proposed, lists = proposed_nodes(placement.new, settings.well_known)
    kept = cut(proposed, lists)
    plan = ProvisioningPlan(
        seen=Seen.of(snapshot),
        proposed=kept,
        type_lists=lists,
        nominated=tuple(n for n in real.nominated if n in snapshot.nodes),
        refusals=refusals(real),
        more=len(kept) < len(proposed),
    )
    return _with_used_lists(plan), placement


def cut(proposed: tuple[ProposedNode, ...], lists: tuple[tuple[str, ...], ...]) -> tuple[ProposedNode, ...]:
    """The first nodes that fit a plan, with the lists that they need."""
    size, seen = 0, set[int]()
    for count, node in enumerate(proposed):
        size += len(orjson.dumps(node))
        if node.type_list not in seen:
            seen.add(node.type_list)
            size += len(orjson.dumps(lists[node.type_list]))
        if count == MOST_NODES or (count and size > MOST_BYTES):
            return proposed[:count]
    return proposed


def _with_used_lists(plan: ProvisioningPlan) -> ProvisioningPlan:
    used = sorted({node.type_list for node in plan.proposed})
    new = {old: number for number, old in enumerate(used)}
    proposed = tuple(replace(node, type_list=new[node.type_list]) for node in plan.proposed)
    return replace(plan, proposed=proposed, type_lists=tuple(plan.type_lists[old] for old in used))


def refusals(placement: Placement) -> tuple[Refusal, ...]:
    """How many pods were refused for what, with a few examples."""
    by_reason: dict[str, list[RefusedPod]] = {}
    for refused in placement.refused:
        by_reason.setdefault(", ".join(refused.reasons) or "no NodePool", []).append(refused)
    return tuple(
        Refusal(reason=reason, count=len(pods), examples=tuple(p.pod.key for p in pods[:EXAMPLES]))
        for reason, pods in sorted(by_reason.items())
    )


def placement_notices(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """Everything that one round tells people: S-225 for nodes that stand, S-226, S-227."""
    yield from refusal_notices(placement)
    yield from _nominations(snapshot, placement)
    for empty in placement.empty_pools:
        yield publishable(snapshot, no_compatible_types(empty.pool, empty.because_of_min_values))


def _nominations(snapshot: Snapshot, placement: Placement) -> Iterator[Notice]:
    """S-225: where a pod is expected that needs no new node; for a new one it is said when the claim is made."""
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
                yield Notice(
                    kind="Pod",
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    reason="Nominated",
                    message=message,
                )


def refusal_notices(placement: Placement) -> Iterator[Notice]:
    """S-226: what each pod is told that found no place, or that takes no part."""
    for refused in placement.refused:
        if not refused.waits_for_reservation:
            yield _failed(refused.pod, f"Failed to schedule pod, {why(refused)}")
    for ignored in placement.ignored:
        if not ignored.silent:
            yield _failed(ignored.pod, f"Failed to schedule pod, {ignored.why}")


def _failed(pod: Pod, message: str) -> Notice:
    return Notice(
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        type="Warning",
        reason="FailedScheduling",
        message=message,
        window=FAILED_WINDOW,
    )
