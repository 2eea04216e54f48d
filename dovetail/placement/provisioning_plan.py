"""From a snapshot to a plan: what provisioning carries out.

A plan is cut where it would grow beyond what a history should hold; the rest is planned in the next round, which
follows at once.
"""

from collections.abc import Callable
from dataclasses import replace

import orjson

from dovetail.messages.plans import ProposedNode, ProvisioningPlan, Refusal, Seen
from dovetail.model.judging import SetAside, Unjudged
from dovetail.model.placements import Placement, RefusedPod
from dovetail.model.snapshot import Snapshot
from dovetail.placement.buffers.verdicts import for_real_pods
from dovetail.placement.place_pods import Index, place
from dovetail.placement.proposals import proposed_nodes
from dovetail.placement.settings import PlacementSettings

# A payload over 2 MB is refused; these leave room for what travels beside the plan.
MOST_NODES = 100
MOST_BYTES = 200 * 1024
EXAMPLES = 3


def plan_provisioning(
    snapshot: Snapshot,
    settings: PlacementSettings,
    should_stop: Callable[[], bool],
    first: frozenset[str] = frozenset(),
) -> tuple[ProvisioningPlan, Placement]:
    """The plan, and the placement that it was made from; of buffers the plan knows only the nodes that they need.

    `first`: UIDs of pods that the pass before this one had no time for.
    """
    index = Index(snapshot, settings)
    placement = place(index, should_stop=should_stop, first=first)
    real = for_real_pods(placement)
    proposed, lists = proposed_nodes(placement.new, settings.well_known)
    kept = cut(proposed, lists, index.aside)
    plan = ProvisioningPlan(
        seen=Seen.of(snapshot),
        proposed=kept,
        type_lists=lists,
        nominated=tuple(n for n in real.nominated if n in snapshot.nodes),
        refusals=refusals(real),
        more=len(kept) < len(proposed),
    )
    return _with_used_lists(plan), replace(placement, unjudged=index.aside.found)


def cut(
    proposed: tuple[ProposedNode, ...], lists: tuple[tuple[str, ...], ...], aside: SetAside | None = None
) -> tuple[ProposedNode, ...]:
    """The first nodes that fit a plan, with the lists that they need; one that cannot be written is left out."""
    size, seen, aside = 0, set[int](), aside or SetAside()
    kept: list[ProposedNode] = []
    for node in proposed:
        written = aside.judge(next(iter(node.pods), None), "plan", orjson.dumps, node)
        if isinstance(written, Unjudged):
            continue
        size += len(written)
        if node.type_list not in seen:
            seen.add(node.type_list)
            size += len(orjson.dumps(lists[node.type_list]))
        if len(kept) == MOST_NODES or (kept and size > MOST_BYTES):
            break
        kept.append(node)
    return tuple(kept)


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
