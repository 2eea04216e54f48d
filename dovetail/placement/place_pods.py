"""Where do these pods go?

The entry to this package. Provisioning and `dovetail explain` ask `place`. Disruption makes one `Index` of its snapshot
and asks `simulate` as often as it likes what would happen if some nodes were gone, or moves the pods of node after node
in one `StepwiseSimulation`. The same snapshot, pods and settings give the same answer on any machine.

Only this package imports from the subfolders cluster, constraints, search and answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from dovetail.model.places.placements import IgnoredPod, Placement
from dovetail.model.pods import Pod
from dovetail.placement.answer.outcome import Progress, of_round, of_simulation
from dovetail.placement.cost.cheaper import with_cheaper_nodes
from dovetail.placement.cost.policy import cost_pools, is_asked_for
from dovetail.placement.cost.steady import expected_pods, without_expected
from dovetail.placement.cost.worth import worth_of_pods
from dovetail.placement.earlier_claims import EarlierClaims
from dovetail.placement.facts.moving_pods import Sizes
from dovetail.placement.index.free_room import FreeRoom
from dovetail.placement.index.index import Index
from dovetail.placement.index.waiting_pods import WaitingPods, pending_pods
from dovetail.placement.search.packing import ClosingPacking, Packing, emptiest_first
from dovetail.placement.search.solve import Pass, PassOptions

__all__ = [
    "FreeRoom",
    "Index",
    "SimulationOptions",
    "Sizes",
    "StepwiseSimulation",
    "WaitingPods",
    "cost_pools",
    "is_asked_for",
    "pending_pods",
    "place",
    "simulate",
    "worth_of_pods",
]


def place(
    index: Index,
    pods: Sequence[Pod] | None = None,
    should_stop: Callable[[], bool] | None = None,
    packing: Packing = emptiest_first,
    first: frozenset[str] = frozenset(),
) -> Placement:
    """Provisioning's question (PLC-10): reserved capacity is waited for, and settling nodes are used like any other.

    Without `pods` it is asked for all that need room: pending ones for which no node is on its way, and those of
    leaving nodes (PLC-8). Pods for which claims were made before are placed first, and on existing nodes only (PLQ-32).
    `first`: UIDs of pods that come before the others.
    """
    if pods is None:
        pods = (*index.waiting().pending, *index.waiting().leaving)
    if not index.pools:  # PLC-12: not even existing nodes are considered
        unserved = tuple(IgnoredPod(pod=pod, why="no dynamic nodepools found", silent=True) for pod in pods)
        return Placement(ignored=(*index.ignored, *unserved), unjudged=index.judging.found)
    options = PassOptions(should_stop=should_stop, packing=packing, first=first, count_zones=True)
    now = cache(partial(Pass, index, pods, options))  # made where it is asked: no pod is placed in it
    earlier = index.earlier_claims(pods, lambda node_name, pod: now().takes(node_name, pod))
    run, unplaced = _run(index, pods, options, earlier)
    expected = expected_pods(run)
    if expected:
        run, unplaced = _run(index, pods, options, earlier, expected)
    placement = of_round(with_cheaper_nodes(run))
    return _with_served(without_expected(placement) if expected else placement, unplaced, earlier)


def _run(
    index: Index, pods: Sequence[Pod], options: PassOptions, earlier: EarlierClaims, expected: Sequence[Pod] = ()
) -> tuple[Pass, Sequence[Pod]]:
    """The pass, and the pods that get no node because claims were made for them before. Only others that the pass
    before this one had no time for come before those, or they would be kept out forever (PLQ-23). `expected`: pods to
    place after all others."""
    run = Pass(index, (*pods, *expected) if expected else pods, options)
    served = [pod for pod in pods if pod.uid in earlier]
    unplaced: Sequence[Pod] = ()
    if served:
        run.run([pod for pod in pods if pod.uid in options.first and pod.uid not in earlier])
        unplaced = run.run_on_nodes_only(served)
        pods = [pod for pod in pods if pod.uid not in options.first and pod.uid not in earlier]
    tried_first = any(pod.uid in options.first for each in earlier.trials for pod in each)
    if not tried_first:
        run.run(pods)
    unplaced = _one_of_each(run, earlier.trials, unplaced)
    if tried_first:
        run.run(pods)
    if expected:
        run.run(expected)
    return run, unplaced


def _one_of_each(run: Pass, trials: Sequence[Sequence[Pod]], unplaced: Sequence[Pod]) -> Sequence[Pod]:
    """Place one pod of each, if one can have a place; those that were not tried."""
    waiting = {pod.uid: pod for pod in unplaced}
    for pods in trials:
        for pod in pods:
            if waiting.pop(pod.uid, None) is not None:
                run.run([pod])
                if pod.uid not in run.refused:
                    break
    return list(waiting.values())


def _with_served(placement: Placement, unplaced: Sequence[Pod], earlier: EarlierClaims) -> Placement:
    """The placement with the pods that get no node because claims were made for them before. A pod that only waits
    needs no Event, nor does one that runs."""
    if not unplaced:
        return placement
    ignored = [
        IgnoredPod(
            pod=pod,
            why=earlier.why(pod.uid),
            silent=pod.uid in earlier.awaited or bool(pod.node_name),
            earlier_claim=earlier.kind(pod.uid),
        )
        for pod in unplaced
    ]
    return replace(placement, ignored=(*placement.ignored, *ignored))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """What a simulation assumes besides the nodes that are gone."""

    spare_settling_nodes: bool = False  # PLC-91, PLC-218: consolidation leaves settling nodes alone, drift does not
    closed: frozenset[str] = frozenset()  # names of claims whose room is promised: nothing is placed there
    spared: frozenset[str] = frozenset()  # names of claims whose nodes are a step's last choice: they leave soon
    housed: frozenset[str] = frozenset()  # UIDs of pods that have been promised room: they ask for none
    should_stop: Callable[[], bool] | None = None
    strict_reservations: bool = False  # PLC-184: reserved capacity is waited for, as provisioning does
    cheaper: bool = False  # new nodes of pools under the policy cost are chosen by it


_PLAIN = SimulationOptions()


def simulate(index: Index, without: frozenset[str] = frozenset(), options: SimulationOptions = _PLAIN) -> Placement:
    """Disruption's question (PLC-216 to PLC-221): where would all pods be if the nodes of these names were gone?

    The pods are the pending ones, even if a node for them is on its way, those of leaving nodes, and the reschedulable
    ones of the nodes that are imagined gone.
    """
    pods = [*_in_need(index, options), *_moved(index, without)]
    run = _simulation(index, without, options, pods)
    run.run(pods)
    return of_simulation(with_cheaper_nodes(run) if options.cheaper else run, Progress())


class StepwiseSimulation:
    """The cluster without these nodes, whose pods move node after node in a single pass.

    So no node's pods count on room that those of another have taken. The new nodes of one step are closed to the next,
    because each step becomes a separate command.
    """

    def __init__(
        self,
        index: Index,
        without: frozenset[str],
        options: SimulationOptions,
        later: frozenset[str],
    ) -> None:
        """`later`: UIDs of pods in need that are not placed at the start, because a later step moves them."""
        self._packing = ClosingPacking()
        in_need = _in_need(index, options)
        pods = [*in_need, *_moved(index, without)]
        self._run = _simulation(index, without, options, pods, self._packing)
        self._run.run([pod for pod in in_need if pod.uid not in later])  # the scheduler spares no node for them
        self._spared = index.nodes_of(options.spared)

    def move(self, pods: Sequence[Pod], closed: frozenset[str] = frozenset()) -> Placement:
        """Where these pods go, after all those that were moved before them. `closed`: pools without new nodes."""
        run, since = self._run, Progress.of(self._run)
        run.close(closed)
        self._packing.close(since.new)
        run.refused.clear()  # each step answers for its own pods only
        run.run_sparing(pods, self._spared)
        return of_simulation(run, since)


def _in_need(index: Index, options: SimulationOptions) -> list[Pod]:
    """The pods that need room whichever nodes are imagined gone."""
    waiting, housed = index.waiting(), options.housed
    pods = [*waiting.pending, *waiting.promised, *waiting.leaving]
    return [pod for pod in pods if pod.uid not in housed] if housed else pods


def _moved(index: Index, without: frozenset[str]) -> list[Pod]:
    return [pod for name in sorted(without) for pod in index.moving_from(name).pods]


def _simulation(
    index: Index,
    without: frozenset[str],
    options: SimulationOptions,
    pods: Sequence[Pod],
    packing: Packing = emptiest_first,
) -> Pass:
    """A pass over the cluster without these nodes; a node that is closed still counts in topology and in limits."""
    chosen = PassOptions(
        without=without,
        closed=options.closed,
        strict_reservations=options.strict_reservations,
        spare_settling_nodes=options.spare_settling_nodes,
        should_stop=options.should_stop,
        packing=packing,
    )
    return Pass(index, pods, chosen)
