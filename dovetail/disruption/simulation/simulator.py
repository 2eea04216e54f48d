"""The simulation, answered by the placement engine (DIS-82 to DIS-95).

Made once per round over one index; every question is one pass over it. What disruption adds to the engine's answer:
nodes whose room is promised take no other pods; pods that have been promised room, or for which others make new nodes,
need none; and only what the candidates cause counts against them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Final

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.nodes.reserved import with_one_more
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.simulation.pricing import PriceBook
from dovetail.disruption.simulation.room import is_hopeless
from dovetail.disruption.simulation.simulation import Replacement, Simulation, Wave
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.judging import Unjudged
from dovetail.model.objects.pod_index import NO_PODS, asking_to_stay
from dovetail.model.objects.pod_rules import is_active, is_given_up, is_mirror, is_reschedulable, tolerates_disrupted
from dovetail.model.places.placements import NewNode, Placement, RefusedPod
from dovetail.model.places.reservations import RESERVATION_ID_SUFFIX
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.notices.decisions import no_compatible_types, pod_notice
from dovetail.notices.notice import Notice
from dovetail.placement.buffers.virtual_pods import is_virtual
from dovetail.placement.place_pods import (
    FreeRoom,
    Index,
    SimulationOptions,
    Sizes,
    StepwiseSimulation,
    cost_pools,
    is_asked_for,
    simulate,
    worth_of_pods,
)
from dovetail.placement.settings import PlacementSettings
from dovetail.rules.rollout.nodes import leaves_for_drift

NO_POOLS: Final = "no ready NodePool"


class PlacementSimulator:
    """Questions over one snapshot."""

    def __init__(
        self, fleet: Fleet, prices: PriceBook, should_stop: Callable[[], bool], *, strict: bool = False
    ) -> None:
        """`strict`: reserved capacity is waited for."""
        self._fleet = fleet
        self._strict = strict
        self._freed: dict[str, PlacementSimulator] = {}  # by reservation, as if it had one instance more
        self._prices = prices
        self._should_stop = should_stop
        self._asked: set[str] = set()  # nodes whose leaving was imagined

    @cached_property
    def index(self) -> Index:
        """The compiled snapshot, in which the nodes that disruption counts as leaving are leaving."""
        made = Index(_as_placement_sees_it(self._fleet), placement_settings(self._fleet.settings), self._fleet.judging)
        made.emptied = frozenset(self._fleet.faults)
        return made

    @cached_property
    def _options(self) -> SimulationOptions:
        """What every simulation of the round imagines: promises are kept."""
        promises, claims = self._fleet.promises, self._fleet.snapshot.claims.values()
        return SimulationOptions(
            closed=frozenset(claim.name for claim in claims if promises.holds(claim)),
            housed=promises.pods,
            should_stop=self._should_stop,
            strict_reservations=self._strict,
        )

    @cached_property
    def cost_pools(self) -> Mapping[str, float]:
        """The pools under the policy cost, with what each of their nodes costs in addition to its instance; if no pool
        uses it, nothing is compiled to find out."""
        if not is_asked_for(self._fleet.pools.values(), self._fleet.settings.cost):
            return {}
        return cost_pools(self.index)

    def worth(self, candidates: Sequence[Candidate]) -> Mapping[str, float]:
        """For each pod that would move, its share of the least that new nodes for all of them would cost, as far as
        amounts and offerings say."""
        pods = [pod for c in candidates for pod in self.movers(c)]
        of_pods = worth_of_pods(self.index, pods)
        return {pod.key: of_pods.get(pod.uid, 0.0) for pod in pods}

    def simulate(
        self, candidates: Sequence[Candidate], *, consolidating: bool, cheaper: bool = False, up_only: bool = False
    ) -> Simulation:
        """The cluster without these nodes (DIS-82)."""
        if any(self._fleet.is_leaving(c.member) for c in candidates):
            return Simulation(candidate_leaves=True)
        self._asked.update(_names(candidates))
        if self._fails:
            return Simulation(failed=NO_POOLS)
        options = replace(self._options, spare_settling_nodes=consolidating, cheaper=cheaper)
        if up_only:
            options = replace(options, closed=options.closed | self._starting)
        first = candidates[0].member.node if candidates else None
        outcome = self._fleet.judging.judge(first, "simulation", self._simulated, candidates, options)
        return Simulation(unplaced={outcome.name: outcome.says}) if isinstance(outcome, Unjudged) else outcome

    @cached_property
    def _starting(self) -> frozenset[str]:
        """The claims whose nodes are not up yet."""
        return frozenset(m.claim.name for m in self._fleet.members if m.claim is not None and not m.is_initialized)

    def _simulated(self, candidates: Sequence[Candidate], options: SimulationOptions) -> Simulation:
        if not self._fleet.settings.profile.keeps_waiting_pods_apart:
            return _simulation_of(simulate(self.index, _names(candidates), options))
        options = replace(options, housed=options.housed | self._rehoused)
        return self._own(_simulation_of(simulate(self.index, _names(candidates), options)), candidates)

    @cached_property
    def _rehoused(self) -> frozenset[str]:
        """The pods of leaving nodes that move to new nodes, which are made for them whatever is decided here.

        If they were placed as well, they would share those nodes with the candidates' pods; then, of many nodes that
        could be consolidated a few at a time, no second plan would be found while the first one waits.
        """
        housed = self._options.housed
        leaving = {pod.uid for pod in self.index.waiting().leaving} - housed
        if not leaving:
            return frozenset()
        return frozenset(leaving & {pod.uid for node in self._baseline.new for pod in node.pods})

    def _own(self, outcome: Simulation, candidates: Sequence[Candidate]) -> Simulation:
        """Only what these nodes cause: new nodes that other pods need anyway are made by others, not for these.

        Virtual pods that have room now lose it to these nodes' pods, or with these nodes (PLC-215).
        """
        moved = {pod.key for c in candidates for pod in self.movers(c)}
        moved.update(pod.key for pods in self._virtual.values() for pod in pods)
        unplaced = outcome.unplaced
        if any(pod not in moved for pod in unplaced):
            homeless = {refused.pod.key for refused in self._baseline.refused}
            unplaced = {pod: why for pod, why in unplaced.items() if pod in moved or pod not in homeless}
        made = tuple(r for r in outcome.replacements if not moved.isdisjoint(r.pods))
        return replace(outcome, replacements=made, unplaced=unplaced)

    @cached_property
    def _baseline(self) -> Placement:
        """The cluster as it is: where the pods that have no place now would be placed."""
        return simulate(self.index, options=self._options)

    @cached_property
    def destinations(self) -> frozenset[str]:
        """The nodes on which pods that have no place now will land: pending ones, and those of leaving nodes."""
        return frozenset(self._baseline.existing)

    @cached_property
    def _virtual(self) -> Mapping[str, list[Pod]]:
        """The virtual pods that now have room on each node."""
        if not self.index.virtual.pending:
            return {}
        placed = {name: [pod for pod in pods if is_virtual(pod)] for name, pods in self._baseline.existing.items()}
        return {name: pods for name, pods in placed.items() if pods}

    def virtual_on(self, candidate: Candidate) -> list[Pod]:
        """The virtual pods that now have room on the candidate."""
        return self._virtual.get(candidate.name, [])

    @property
    def buffered(self) -> Mapping[str, int]:
        """How many virtual pods now have room on each node (DIS-68)."""
        return {name: len(pods) for name, pods in self._virtual.items()}

    def freed(
        self, candidates: Sequence[Candidate], reservation: str, closed: frozenset[str], *, awaited: bool
    ) -> Simulation:
        """The last of these nodes leaves after the others, and its reservation has its instance back (DIS-202).
        Provisioning will place its pods then: so reserved capacity is waited for."""
        known = self._freed.get(reservation)
        if known is None:
            fleet = Fleet(with_one_more(self._fleet.snapshot, reservation), self._fleet.settings)
            fleet.judging = self._fleet.judging
            known = self._freed[reservation] = PlacementSimulator(fleet, self._prices, self._should_stop, strict=True)
        taken = [node for node in known._baseline.new if _asks_for(node, reservation)] if awaited else []
        if taken:
            return Simulation(unplaced={pod.key: f"waits for reservation {reservation}" for pod in taken[0].pods})
        wave = known.wave(candidates, without_pending=not awaited)
        for each in candidates[:-1]:
            wave.take(each)
        return wave.take(candidates[-1], closed)

    def without(self, candidate: Candidate, closed: frozenset[str]) -> Simulation:
        """The cluster without this node, and without new nodes of these NodePools."""
        alone = (candidate,)
        return self.wave(alone).take(candidate, closed) if closed else self.simulate(alone, consolidating=False)

    def is_hopeless(self, candidates: Sequence[Candidate]) -> bool:
        """Whether resources and list prices alone rule these nodes out, so that a simulation can be saved."""
        self._asked.update(_names(candidates))
        return not self._fails and is_hopeless(self._room, candidates, self._sizes)

    @property
    def _fails(self) -> bool:
        return self._fleet.settings.profile.needs_a_pool and not self.index.pools

    @cached_property
    def _room(self) -> FreeRoom:
        return FreeRoom(self.index, self._options.closed, self._prices.best)

    def wave(self, candidates: Sequence[Candidate], *, without_pending: bool = False) -> Wave:
        """The cluster as all of these leave, one after the other.

        Nodes that will be replaced too are their pods' last choice: pods placed there would soon move again.
        """
        self._asked.update(_names(candidates))
        due = frozenset(c.name for c in self._fleet.snapshot.claims.values() if _is_due(c, self._fleet))
        pending = {pod.uid for pod in self.index.waiting().pending} if without_pending else frozenset[str]()
        options = replace(self._options, spared=due, housed=self._options.housed | pending)
        return PlacementWave(self, candidates, options)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What people should know about the simulations: pools that have nothing to offer (DIS-95), and what the
        annotations mean on pods that would have to move, including those of leaving nodes (DIS-42)."""
        if "index" not in self.__dict__:
            return ()
        empty = map(no_compatible_types, self.index.empty_pools)
        return (*empty, *self._pod_notices())

    def _pod_notices(self) -> Iterator[Notice]:
        if not self._asked:
            return
        leaving = {item.node_name for item in self.index.leaving if item.node is not None}
        for name in sorted(leaving | self._asked):
            for pod in self.index.on_node.get(name, NO_PODS).kept(asking_to_stay):
                if not _is_judged(pod, on_leaving_node=name in leaving):
                    continue
                notice = pod_notice(pod, self._fleet.now)
                if notice is not None:
                    yield notice

    def movers(self, candidate: Candidate) -> Sequence[Pod]:
        """The candidate's pods that will need another place (DIS-47)."""
        return self.index.moving_from(candidate.name).pods

    def _sizes(self, candidate: Candidate) -> Sizes:
        return self.index.moving_from(candidate.name).sizes


class PlacementWave:
    """One pass in which nodes give up their pods one after another."""

    def __init__(
        self, simulator: PlacementSimulator, candidates: Sequence[Candidate], options: SimulationOptions
    ) -> None:
        self._simulator = simulator
        # Room that a buffer has on a node moves with that node, whose replacement is made for it.
        later = frozenset(pod.uid for c in candidates for pod in simulator.virtual_on(c))
        self._steps = StepwiseSimulation(simulator.index, _names(candidates), options, later)

    def take(self, candidate: Candidate, closed: frozenset[str] = frozenset()) -> Simulation:
        """Where this node's pods go, after all those that were taken before it."""
        judging = self._simulator.index.judging
        outcome = judging.judge(candidate.member.node, "simulation", self._moved, candidate, closed)
        return Simulation(unplaced={outcome.name: outcome.says}) if isinstance(outcome, Unjudged) else outcome

    def _moved(self, candidate: Candidate, closed: frozenset[str]) -> Simulation:
        pods = [*self._simulator.movers(candidate), *self._simulator.virtual_on(candidate)]
        return _simulation_of(self._steps.move(pods, closed))


def _asks_for(node: NewNode, reservation: str) -> bool:
    return any(
        reservation in each.values for key, each in node.requirements.items() if key.endswith(RESERVATION_ID_SUFFIX)
    )


def _is_judged(pod: Pod, on_leaving_node: bool) -> bool:
    """Whether a simulation considers a pod's annotation: because the pod would have to move or, if its node leaves
    anyway, because a drain would evict it."""
    if not is_active(pod):
        return False
    return is_reschedulable(pod) or (on_leaving_node and not (is_mirror(pod) or tolerates_disrupted(pod)))


def _is_due(claim: NodeClaim, fleet: Fleet) -> bool:
    """Whether its node will be replaced, now or when its turn comes."""
    asked = leaves_for_drift(claim, fleet.snapshot) or names.REPLACE in claim.annotations
    return asked or claim.is_expired(fleet.now) or fleet.replaced_from.get(claim.name, inf) <= fleet.now


def _names(candidates: Sequence[Candidate]) -> frozenset[str]:
    return frozenset(c.name for c in candidates)


def _simulation_of(placement: Placement) -> Simulation:
    """What a placement means for disruption. Only pods that run today matter: pending ones were without a place before
    (DIS-90). Virtual pods nominate nothing (DIS-20)."""
    if not placement.complete:
        return Simulation(failed="no time was left")
    moved = {
        name: tuple(sorted(pod.key for pod in pods if not is_virtual(pod))) for name, pods in placement.existing.items()
    }
    return Simulation(
        replacements=tuple(_replacement(node) for node in placement.new),
        moved={name: keys for name, keys in moved.items() if keys},
        unplaced={r.pod.key: _why(r) for r in placement.refused if not is_given_up(r.pod)},
    )


def placement_settings(settings: DisruptionSettings) -> PlacementSettings:
    """The placement engine's own choices that belong to ours."""
    return PlacementSettings(
        preference_policy=settings.preference_policy,
        default_spread=settings.default_spread,
        min_values_policy=settings.min_values_policy,
        reserved_capacity=settings.reserved_capacity,
        well_known=settings.well_known,
        profile=settings.profile.placement,
        cost=settings.cost,
    )


def _as_placement_sees_it(fleet: Fleet) -> Snapshot:
    """The snapshot that names all claims that disruption counts as leaving."""
    leaving = frozenset(m.claim.name for m in fleet.members if m.claim is not None and fleet.is_leaving(m))
    return replace(fleet.snapshot, disrupting=leaving)


def _replacement(node: NewNode) -> Replacement:
    return Replacement(
        pool=node.pool,
        requirements=node.requirements,
        types=node.types,
        pods=tuple(sorted(pod.key for pod in node.pods)),
        node=node,
    )


def _why(refused: RefusedPod) -> str:
    if not refused.pools:
        return "no NodePool could take it"
    first = refused.pools[0]
    return first.conflict or first.reason
