"""Where pods keep coming, a first node is made larger: what comes next finds room on it (decision record 294).

Under the policy cost a node holds just its pods, so the next one waits for a node of its own. Where nodes have been
launched for pods again and again in the last minutes, pods like those that need a node now are placed with them, as
many as a small share of what runs; none like those of a roll-out, which come in place of others. They stand for room
alone: nobody hears of them, and no node is made for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.places.placements import Placement
from dovetail.model.pods import Pod, PodShape, controller_of
from dovetail.model.values.resources import CPU
from dovetail.placement.constraints.topology_terms import TermBook
from dovetail.placement.cost.policy import cost_pools, is_asked_for
from dovetail.placement.search.solve import Pass

RECENT_SECONDS: Final = 900.0  # seconds in which nodes were launched for pods
LAUNCHES: Final = 2  # moments of launches from which on arrivals count as steady
SHARE: Final = 0.03  # of the cpus that pods of running nodes ask for
MOST: Final = 3  # of each pod that needs a node
LARGE: Final = 400  # pods at once fill nodes by themselves, and to place them a second time would take long
_MARK: Final = "expected/"
_OF_REPLICA_SET: Final = "pod-template-hash"  # the label in which pods of a Deployment's ReplicaSets differ

_Kind = frozenset[tuple[str, str]]


def expected_pods(run: Pass) -> tuple[Pod, ...]:
    """Pods to make room for beside those that need new nodes now."""
    index = run.index
    if not run.drafts.made or not run.complete or not is_asked_for(index.pools, index.settings.cost):
        return ()
    costs = cost_pools(index)
    steady = {pool for pool in costs if _is_steady(index.snapshot.claims_by_pool.get(pool, ()), index.snapshot.now)}
    waiting = [pod for d in run.drafts.made if d.template.pool.name in steady for pod in d.pods]
    if not waiting or len(waiting) >= LARGE:
        return ()
    waiting = _without_rollouts(waiting, index.snapshot.pods.values(), index.snapshot.now)
    alone = {shape for shape in {pod.shape for pod in waiting} if _stays_alone(shape, run.topology.book)}
    room = SHARE * sum(pod.requests.get(CPU, 0) for pod in index.snapshot.pods.values() if pod.node_name)
    return tuple(_within(_copies([pod for pod in waiting if pod.shape not in alone]), room))


def _stays_alone(shape: PodShape, book: TermBook) -> bool:
    """Whether another such pod could not run beside it, so that room for one is paid and never used."""
    keeps_off = (
        term.kind == "anti" or (term.kind == "spread" and term.key == names.HOSTNAME and term.max_skew == 1)
        for term in book.owned(shape, preferences=False)
        if term.counts(shape)
    )
    return bool(shape.host_ports) or any(keeps_off)


def _is_steady(claims: Iterable[NodeClaim], now: float) -> bool:
    """Whether nodes were launched for pods at several moments recently; what consolidation launches does not count."""
    moments = {
        c.created for c in claims if now - RECENT_SECONDS < c.created < now and not memory_of(c.annotations).moved_from
    }
    return len(moments) >= LAUNCHES


def _without_rollouts(waiting: Sequence[Pod], pods: Iterable[Pod], now: float) -> list[Pod]:
    """Those that are no pods of a new ReplicaSet: they come in place of an older one's, whose room the next of them
    find."""
    kinds = {pod.shape: _kind(pod.shape) for pod in waiting}
    before: dict[tuple[str, _Kind], set[str]] = {(pod.namespace, kinds[pod.shape]): set() for pod in waiting}
    namespaces = {pod.namespace for pod in waiting}
    for pod in pods:
        if pod.namespace in namespaces and pod.created <= now - RECENT_SECONDS and (uid := _replica_set(pod)):
            if pod.shape not in kinds:
                kinds[pod.shape] = _kind(pod.shape)
            if (found := before.get((pod.namespace, kinds[pod.shape]))) is not None:
                found.add(uid)
    return [
        pod
        for pod in waiting
        if not (uid := _replica_set(pod)) or uid in (before[pod.namespace, kinds[pod.shape]] or {uid})
    ]


def _replica_set(pod: Pod) -> str:
    owner = controller_of(pod.owners)
    return owner.uid if owner is not None and owner.kind == "ReplicaSet" else ""


def _kind(shape: PodShape) -> _Kind:
    """What pods of one Deployment have in common, whichever of its ReplicaSets makes them."""
    return frozenset(each for each in shape.labels.items() if each[0] != _OF_REPLICA_SET)


def _copies(pods: Sequence[Pod]) -> Iterator[Pod]:
    shapes: dict[int, PodShape] = {}
    for number, pod in enumerate(islice(cycle(pods), MOST * len(pods))):
        shape = shapes.get(id(pod.shape))
        if shape is None:
            shape = shapes[id(pod.shape)] = _bare(pod.shape)
        name = f"{_MARK}{number}"
        yield replace(pod, name=name, uid=name, shape=shape, node_name="", unschedulable=True)


def _bare(shape: PodShape) -> PodShape:
    """The shape without what it asks of other pods, so that no spread counts it."""
    return PodShape(
        namespace=shape.namespace,
        labels={},
        node_selector=shape.node_selector,
        required_terms=shape.required_terms,
        tolerations=shape.tolerations,
    )


def _within(pods: Iterable[Pod], cpus: float) -> Iterator[Pod]:
    for pod in pods:
        cpus -= pod.requests.get(CPU, 0)
        if cpus < 0:
            return
        yield pod


def without_expected(placement: Placement) -> Placement:
    """The pass without the expected pods: nodes keep their room, and a node that holds expected pods alone is not
    made."""
    new = tuple(replace(node, pods=_real(node.pods)) for node in placement.new)
    existing = {name: _real(pods) for name, pods in placement.existing.items()}
    return replace(
        placement,
        new=tuple(node for node, before in zip(new, placement.new, strict=True) if node.pods or not before.pods),
        existing={name: pods for name, pods in existing.items() if pods},
        refused=tuple(each for each in placement.refused if not _is_expected(each.pod)),
    )


def _is_expected(pod: Pod) -> bool:
    return pod.uid.startswith(_MARK)


def _real(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if not _is_expected(pod))
