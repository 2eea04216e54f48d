"""From a snapshot to a plan: what provisioning carries out.

A plan is cut where it would grow beyond what a history should hold; the rest is planned in the next round, which
follows at once.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace

from dovetail.messages.plans import ProposedNode, ProvisioningPlan, Refusal, Seen
from dovetail.messages.sizes import LAUNCH_PLAN_BYTES, NOMINATED_BYTES, encoded_bytes
from dovetail.messages.type_lists import TypeLists, with_own_lists
from dovetail.model import names
from dovetail.model.objects.judging import Unjudged
from dovetail.model.own.claim_memory import with_memory
from dovetail.model.places.placements import Placement, RefusedPod
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import CPU, MEMORY
from dovetail.placement.asking_again import with_short_offerings
from dovetail.placement.buffers.verdicts import for_real_pods
from dovetail.placement.place_pods import Index, cost_pools, is_asked_for, place
from dovetail.placement.proposals import proposed_nodes
from dovetail.placement.settings import PlacementSettings
from dovetail.rules.brake.unused_launches import stop_of

MOST_NODES = 400
EXAMPLES = 3
TOO_LARGE = "the node's NodeClaim would be too large for a plan"


def plan_provisioning(
    snapshot: Snapshot,
    settings: PlacementSettings,
    should_stop: Callable[[], bool],
    first: frozenset[str] = frozenset(),
) -> tuple[ProvisioningPlan, Placement]:
    """The plan, and the placement that it was made from; all that the plan has of buffers is the nodes they need.

    `first`: UIDs of pods that the pass before this one had no time for.
    """
    index = Index(snapshot, settings)
    placement = place(index, should_stop=should_stop, first=first)
    real = for_real_pods(placement)
    proposed, lists = proposed_nodes(placement.new, settings.well_known)
    if not proposed and real.refused and settings.profile.asks_again:
        proposed, lists = _asking_again(index, should_stop)
    proposed = _keeping_places(_tried_alone(proposed, index), index)
    proposed = in_launch_order(_writable(proposed, index))
    too_large = [node for node in proposed if _bytes_alone(node, lists) > LAUNCH_PLAN_BYTES]
    fitting = tuple(node for node in proposed if node not in too_large)
    kept, own = with_own_lists(cut(fitting, lists), lists)
    plan = ProvisioningPlan(
        seen=Seen.of(snapshot),
        proposed=kept,
        type_lists=own,
        nominated=first_names(tuple(n for n in real.nominated if n in snapshot.nodes)),
        refusals=(*refusals(real), *_too_large(too_large)),
        more=len(kept) < len(fitting),
    )
    return plan, replace(placement, unjudged=index.judging.found)


def _asking_again(index: Index, should_stop: Callable[[], bool]) -> tuple[tuple[ProposedNode, ...], TypeLists]:
    """One claim for what was short a while ago; none if nothing was, or if pods could not use it."""
    opened = with_short_offerings(index.snapshot)
    if opened is None:
        return (), ()
    placement = place(Index(opened, index.settings), should_stop=should_stop)
    proposed, lists = proposed_nodes(placement.new, index.settings.well_known)
    asking = [node for node in in_launch_order(proposed) if node.pods][:1]
    return tuple(_remembering(node, asks_again=True) for node in asking), lists


def _tried_alone(proposed: tuple[ProposedNode, ...], index: Index) -> tuple[ProposedNode, ...]:
    """At most one node for each pool that the brake has stopped and that is tried again (PLQ-33)."""
    stopped = {pool.name for pool in index.pools if stop_of(pool) is not None}
    if not stopped.intersection(node.pool for node in proposed):
        return proposed
    tried = {node.pool: node for node in reversed(in_launch_order(proposed)) if node.pods}
    others = tuple(node for node in proposed if node.pool not in stopped)
    return (*others, *(_remembering(node, asks_again=True) for pool, node in tried.items() if pool in stopped))


def _keeping_places(proposed: tuple[ProposedNode, ...], index: Index) -> tuple[ProposedNode, ...]:
    """The plan with each pod of pools under the policy cost nominated for the node that was made for it (PLQ-36): those
    nodes are full as planned, so a pod that is bound elsewhere takes another's room."""
    if not index.settings.cost.keep_places or not is_asked_for(index.pools, index.settings.cost):
        return proposed
    pools = cost_pools(index)
    return tuple(
        _remembering(node, keeps_places=True) if node.pool in pools and node.pods else node for node in proposed
    )


def _remembering(node: ProposedNode, **what: bool) -> ProposedNode:
    return replace(node, annotations=tuple(with_memory(dict(node.annotations), **what).items()))


def _writable(proposed: tuple[ProposedNode, ...], index: Index) -> tuple[ProposedNode, ...]:
    """The nodes that a plan can hold; for each other node, its first pod is named."""
    first = [index.snapshot.pods.get(node.pods[0].uid) if node.pods else None for node in proposed]
    written = [index.judging.judge(pod, "plan", encoded_bytes, node) for pod, node in zip(first, proposed, strict=True)]
    return tuple(n for n, text in zip(proposed, written, strict=True) if not isinstance(text, Unjudged))


def in_launch_order(proposed: tuple[ProposedNode, ...]) -> tuple[ProposedNode, ...]:
    """The largest of each zone first, the zones in turn.

    Pods that are spread over zones are bound as soon as there is room anywhere: when many small nodes of one zone came
    before the large ones of the others, the kube-scheduler filled that zone, and the spread was lost.
    """
    ranks: dict[int, tuple[int, str]] = {}
    of_zone: Counter[str] = Counter()
    for index in sorted(range(len(proposed)), key=lambda i: _by_size(proposed[i])):
        zone = _zones(proposed[index])
        ranks[index] = (of_zone[zone], zone)
        of_zone[zone] += 1
    return tuple(proposed[index] for index in sorted(ranks, key=ranks.__getitem__))


def _by_size(node: ProposedNode) -> tuple[int, int]:
    requests = dict(node.requests)
    return -requests.get(CPU, 0), -requests.get(MEMORY, 0)


def _zones(node: ProposedNode) -> str:
    """The zones that a node may be launched in, as one text; empty where all are possible."""
    values = [each.values for each in node.requirements if each.key == names.ZONE and each.operator == "In"]
    return ",".join(value for some in values for value in sorted(some))


def _bytes_alone(node: ProposedNode, lists: TypeLists) -> int:
    return encoded_bytes(node) + encoded_bytes(lists[node.type_list])


def _too_large(nodes: Collection[ProposedNode]) -> tuple[Refusal, ...]:
    """A pool's template may be as large as the API server admits; then its pods wait, and all others go on."""
    pods = sorted(f"{pod.namespace}/{pod.name}" for node in nodes for pod in node.pods)
    return (Refusal(reason=TOO_LARGE, count=len(pods), examples=tuple(pods[:EXAMPLES])),) if nodes else ()


def cut(proposed: tuple[ProposedNode, ...], lists: TypeLists) -> tuple[ProposedNode, ...]:
    """The first nodes that fit a plan, with the lists that they need."""
    size, seen = 0, set[int]()
    for count, node in enumerate(proposed):
        size += encoded_bytes(node)
        if node.type_list not in seen:
            seen.add(node.type_list)
            size += encoded_bytes(lists[node.type_list])
        if count == MOST_NODES or (count and size > LAUNCH_PLAN_BYTES):
            return proposed[:count]
    return proposed


def first_names(nodes: tuple[str, ...]) -> tuple[str, ...]:
    """The first nodes to nominate; the pods of the others are still pending in the next round, and nominate then."""
    size = 0
    for count, name in enumerate(nodes):
        size += encoded_bytes(name)
        if size > NOMINATED_BYTES // 2:
            return nodes[:count]
    return nodes


def refusals(placement: Placement) -> tuple[Refusal, ...]:
    """How many pods were refused for each reason, with a few examples."""
    by_reason: dict[str, list[RefusedPod]] = {}
    for refused in placement.refused:
        by_reason.setdefault(", ".join(refused.reasons) or "no NodePool", []).append(refused)
    return tuple(
        Refusal(reason=reason, count=len(pods), examples=tuple(p.pod.key for p in pods[:EXAMPLES]))
        for reason, pods in sorted(by_reason.items())
    )
