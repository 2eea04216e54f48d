"""What would have helped a pod that finds no node?

Nothing is guessed from the reason: each single change is made on the snapshot and the placement engine runs again for
this pod alone, so that the printed advice really helps. Advice from the reason alone could lead to the next refusal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dovetail.answers.explain.pod_words import expression_text
from dovetail.answers.wording import amounts_text
from dovetail.model.places.placements import Placement, RefusedPod
from dovetail.model.pods import Pod, Toleration
from dovetail.model.pools import Catalogue, NodePool, Offering
from dovetail.model.scheduling.taints import taint_text
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import subtract
from dovetail.placement.place_pods import Index, place
from dovetail.placement.settings import PlacementSettings

MOST_LABELS: Final = 5  # of a node selector, tried one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    words: str
    pod: Pod
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """A change with which the pod would have found a place, and where."""

    change: str
    then: str


def helps(
    snapshot: Snapshot, refused: RefusedPod, settings: PlacementSettings, should_stop: Callable[[], bool]
) -> tuple[Help, ...]:
    """Every single change that would have helped, smallest first, of those that there is time to try."""
    found = []
    for change in changes(snapshot, refused):
        if should_stop():
            break
        pods = {**change.snapshot.pods, change.pod.uid: change.pod}
        placement = place(Index(replace(change.snapshot, pods=pods), settings), [change.pod], should_stop)
        if where := place_text(placement, change.pod):
            found.append(Help(change=change.words, then=where))
    return tuple(found)


def place_text(placement: Placement, pod: Pod) -> str:
    """Where the placement puts that pod, in words; empty if it found no place."""
    for node in placement.new:
        if any(p.uid == pod.uid for p in node.pods):
            return f"a new node of NodePool {node.pool}, cheapest type {node.types[0].name}"
    for name, pods in placement.existing.items():
        if any(p.uid == pod.uid for p in pods):
            return f"node {name}"
    return ""


def changes(snapshot: Snapshot, refused: RefusedPod) -> Iterator[Change]:
    pod = refused.pod
    yield from _of_selectors(snapshot, pod)
    yield from _of_neighbours(snapshot, pod)
    yield from _of_taints(snapshot, refused)
    yield from _of_pools(snapshot, refused)
    yield from _of_size(snapshot, pod)


def _shaped(snapshot: Snapshot, pod: Pod, words: str, **changed: object) -> Change:
    shape = replace(pod.shape, **changed)  # type: ignore[arg-type]
    return Change(words=words, pod=replace(pod, shape=shape), snapshot=snapshot)


def _of_selectors(snapshot: Snapshot, pod: Pod) -> Iterator[Change]:
    selector = pod.shape.node_selector
    for key, value in selector[:MOST_LABELS]:
        rest = tuple(pair for pair in selector if pair[0] != key)
        yield _shaped(snapshot, pod, f"without the node selector {key}={value}", node_selector=rest)
    terms = pod.shape.required_terms
    if terms:
        words = ", ".join(expression_text(e) for term in terms for e in term.expressions)
        yield _shaped(snapshot, pod, f"without the required node affinity {words}", required_terms=())


def _of_neighbours(snapshot: Snapshot, pod: Pod) -> Iterator[Change]:
    shape = pod.shape
    hard = [s for s in shape.spread if s.when_unsatisfiable == "DoNotSchedule"]
    for spread in hard:
        rest = tuple(s for s in shape.spread if s is not spread)
        yield _shaped(snapshot, pod, f"without the topology spread over {spread.topology_key}", spread=rest)
    if shape.affinity:
        yield _shaped(snapshot, pod, "without the required pod affinity", affinity=())
    if shape.anti_affinity:
        yield _shaped(snapshot, pod, "without the required pod anti-affinity", anti_affinity=())
    if shape.host_ports:
        yield _shaped(snapshot, pod, "without the host ports", host_ports=())
    if shape.volumes:
        yield _shaped(snapshot, pod, "if its volumes could be attached anywhere", volumes=())


def _of_taints(snapshot: Snapshot, refused: RefusedPod) -> Iterator[Change]:
    """A toleration for each pool closed by a taint."""
    shape = refused.pod.shape
    for refusal in refused.pools:
        pool = snapshot.pools.get(refusal.pool)
        if refusal.reason != "taints" or pool is None:
            continue
        taints = pool.template.taints
        added = tuple(Toleration(key=t.key, operator="Equal", value=t.value, effect=t.effect) for t in taints)
        words = f"with a toleration for {', '.join(taint_text(t) for t in taints)} (NodePool {pool.name})"
        yield _shaped(snapshot, refused.pod, words, tolerations=(*shape.tolerations, *added))


def _of_pools(snapshot: Snapshot, refused: RefusedPod) -> Iterator[Change]:
    """Limits, minValues and shortages removed."""
    pod = refused.pod
    for pool in snapshot.pools.values():
        if pool.limits:
            pools = {**snapshot.pools, pool.name: replace(pool, limits=None)}
            used = f", in use {amounts_text({n: (pool.usage or {}).get(n, 0) for n in pool.limits}) or 'nothing'}"
            words = f"with higher limits on NodePool {pool.name} (now {amounts_text(pool.limits)}{used})"
            yield Change(words=words, pod=pod, snapshot=replace(snapshot, pools=pools))
        if any(r.min_values for r in pool.template.requirements):
            pools = {**snapshot.pools, pool.name: _without_minima(pool)}
            yield Change(
                words=f"without the minValues of NodePool {pool.name}", pod=pod, snapshot=replace(snapshot, pools=pools)
            )
    offerings = [o for c in snapshot.catalogues.values() for t in c.types for o in t.offerings if not o.available]
    short, closed = sum(o.short_until > 0 for o in offerings), sorted({o.closed for o in offerings if o.closed})
    if short or closed:
        catalogues = {name: _restocked(c) for name, c in snapshot.catalogues.items()}
        reasons = [*([f"{short} offerings are short now"] if short else []), *closed]
        words = f"once what is not to be had now is to be had again ({'; '.join(reasons)})"
        yield Change(words=words, pod=pod, snapshot=replace(snapshot, catalogues=catalogues))


def _of_size(snapshot: Snapshot, pod: Pod) -> Iterator[Change]:
    """Asking for next to nothing, with the largest type that can be launched."""
    types = [t for c in snapshot.catalogues.values() for t in c.types]
    rooms = [subtract(t.capacity, t.overhead) for t in types]
    asked = [name for name in pod.requests if name != "pods"]
    if not asked:
        return
    largest = {name: max((room.get(name, 0) for room in rooms), default=0) for name in asked}
    missing = [name for name in asked if not largest[name]]
    words = f"with smaller requests (the largest instance types hold {amounts_text(largest) or 'none of these'}"
    words += f", none has {', '.join(missing)})" if missing else ")"
    yield Change(words=words, pod=replace(pod, requests={"pods": 1}), snapshot=snapshot)


def _without_minima(pool: NodePool) -> NodePool:
    requirements = tuple(replace(r, min_values=None) for r in pool.template.requirements)
    return replace(pool, template=replace(pool.template, requirements=requirements))


def _restocked(catalogue: Catalogue) -> Catalogue:
    types = (replace(t, offerings=tuple(map(_reopened, t.offerings))) for t in catalogue.types)
    return replace(catalogue, types=tuple(types))


def _reopened(offering: Offering) -> Offering:
    left = max(offering.reservation_capacity, 1)
    hidden = offering.short_until or offering.closed
    return replace(offering, available=True, reservation_capacity=left) if hidden else offering
