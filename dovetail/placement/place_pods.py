"""Where do these pods go?

The entry of this package. Provisioning asks `place_pods` for pending pods; disruption makes an `Index` of its snapshot
and asks `simulate` as often as it likes what would happen if some nodes were gone; `explain` asks the same again and
prints all reasons. Pure: the same snapshot, pods and settings give the same answer on any machine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.model.placements import IgnoredPod, NewNode, Placement, PoolRefusal, RefusedPod
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.placement.answer.explain import Explainer
from dovetail.placement.answer.finish import Finisher
from dovetail.placement.cluster.index import Index
from dovetail.placement.cluster.waiting_pods import WaitingPods
from dovetail.placement.search.packing import Packing, emptiest_first
from dovetail.placement.search.solve import Pass, PassOptions
from dovetail.placement.settings import PlacementSettings

__all__ = ["Index", "SimulationOptions", "place", "place_pods", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """How a simulation differs: consolidation leaves settling nodes alone, drift does not (S-91, S-218)."""

    spare_settling_nodes: bool = False
    should_stop: Callable[[], bool] | None = None


def place_pods(
    snapshot: Snapshot,
    pods: Sequence[Pod] | None,
    settings: PlacementSettings,
    should_stop: Callable[[], bool] | None = None,
) -> Placement:
    """Provisioning's question (S-10): reserved capacity is waited for, nothing is spared.

    `None` asks for all pods that need room: pending ones that are not spoken for, and those of leaving nodes (S-8).
    """
    return place(Index(snapshot, settings), pods, should_stop=should_stop)


def place(
    index: Index,
    pods: Sequence[Pod] | None = None,
    should_stop: Callable[[], bool] | None = None,
    packing: Packing = emptiest_first,
) -> Placement:
    """The same over an index that is already there."""
    if pods is None:
        pods = (*index.waiting().pending, *index.waiting().leaving)
    if not index.pools:  # S-12: not even existing nodes are considered
        unserved = tuple(IgnoredPod(pod=pod, why="no dynamic nodepools found", silent=True) for pod in pods)
        return Placement(ignored=(*index.ignored, *unserved))
    return _placement(index, pods, PassOptions(should_stop=should_stop, packing=packing, count_zones=True))


def simulate(
    index: Index,
    without: frozenset[str],
    extra: Iterable[Pod] = (),
    options: SimulationOptions | None = None,
) -> Placement:
    """Disruption's question (S-216 to S-221): where would all pods be if the nodes of these names were gone?

    The pods are the pending ones, those spoken for, those of leaving nodes, the reschedulable ones of the nodes that
    are imagined gone, and any extra ones.
    """
    chosen = options or SimulationOptions()
    waiting = index.waiting()
    moved = [pod for name in sorted(without) for pod in index.reschedulable_on(name)]
    pods = [*waiting.pending, *waiting.spoken_for, *moved, *extra, *waiting.leaving]
    placement = _placement(
        index,
        pods,
        PassOptions(
            without=without,
            strict_reservations=False,
            spare_settling_nodes=chosen.spare_settling_nodes,
            should_stop=chosen.should_stop,
        ),
    )
    return _without_uninitialized(index, placement, waiting)


def _placement(index: Index, pods: Sequence[Pod], options: PassOptions) -> Placement:
    run = Pass(index, pods, options)
    run.run(pods)
    new, cut = _finished(run)
    explainer = Explainer(run)
    refused = [explainer.explain(run.refused[uid]) for uid in run.refused]
    return Placement(
        new=new,
        existing={
            index.table.nodes[bit].name: tuple(placed) for bit, placed in sorted(run.nodes.placed.items()) if placed
        },
        refused=(*refused, *cut),
        ignored=index.ignored,
        empty_pools=tuple([(empty.pool.name, empty.because_of_min_values) for empty in index.empty_pools]),
        by_zone=run.by_zone,
        complete=run.complete,
    )


def _finished(run: Pass) -> tuple[tuple[NewNode, ...], list[RefusedPod]]:
    """S-137: claims in their final order; one that truncation leaves short of values is given up with its pods."""
    finisher = Finisher(run.index.settings)
    new: list[NewNode] = []
    cut: list[RefusedPod] = []
    for number in run.claims.order.in_order():
        finished = finisher.finish(run.claims.claims[number])
        if finished.node is not None:
            new.append(finished.node)
            continue
        short: Mapping[str, int] = finished.short
        reason = PoolRefusal(
            pool=finished.claim.template.pool.name,
            reason="min_values",
            conflict=f"too few values among the types that may be listed: {dict(sorted(short.items()))}",
        )
        cut += [RefusedPod(pod=pod, pools=(reason,)) for pod in finished.claim.pods]
    return tuple(new), cut


def _without_uninitialized(index: Index, placement: Placement, waiting: WaitingPods) -> Placement:
    """S-219: a pod must not be moved onto a node that may never come up, unless its own node is leaving anyway."""
    coming = {item.name: item for item in index.table.nodes if not item.initialized}
    if not any(name in coming for name in placement.existing):
        return placement
    leaving = {pod.uid for pod in waiting.leaving}
    refused = [
        RefusedPod(
            pod=pod,
            pools=(
                PoolRefusal(
                    pool=coming[name].pool,
                    reason="uninitialized_node",
                    conflict=f"would schedule against uninitialized node {name}",
                ),
            ),
        )
        for name, pods in placement.existing.items()
        if name in coming
        for pod in pods
        if pod.uid not in leaving
    ]
    return Placement(
        new=placement.new,
        existing=placement.existing,
        refused=(*placement.refused, *refused),
        ignored=placement.ignored,
        empty_pools=placement.empty_pools,
        complete=placement.complete,
    )
