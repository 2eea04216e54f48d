"""The simulation, answered by the placement engine (D-82 to D-95).

Built once per round over one index; every question is one pass over it. What disruption adds: nodes whose room is
promised take nobody else's pods, pods whose room is seen to ask for none, and a wave is one single pass in which node
after node gives up its pods, so that none of them counts the room that another has taken. The trap avoided: a node that
is no destination still counts in the topology and in the limits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.simulation.pricing import PriceBook
from dovetail.disruption.simulation.room import Room
from dovetail.disruption.simulation.simulation import Replacement, Simulation, Wave
from dovetail.model.notice import Notice
from dovetail.model.placements import NewNode, RefusedPod
from dovetail.model.pod_rules import is_provisionable
from dovetail.model.pods import Pod
from dovetail.model.snapshot import Snapshot
from dovetail.notices.decisions import no_compatible_types
from dovetail.placement.answer.explain import Explainer
from dovetail.placement.answer.finish import Finisher
from dovetail.placement.buffers.virtual_pods import is_virtual
from dovetail.placement.cluster.index import Index
from dovetail.placement.search.kinds import Kind
from dovetail.placement.search.on_nodes import NodePlacer
from dovetail.placement.search.on_proposed_nodes import ClaimPlacer
from dovetail.placement.search.packing import Packing, Verdict, emptiest_first
from dovetail.placement.search.solve import Pass, PassOptions
from dovetail.placement.settings import PlacementSettings


class PlacementSimulator:
    """Questions over one snapshot."""

    def __init__(self, fleet: Fleet, prices: PriceBook, should_stop: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._prices = prices
        self._should_stop = should_stop
        self._finisher = Finisher(placement_settings(fleet.settings))
        self._movers: dict[str, list[Pod]] = {}

    @cached_property
    def index(self) -> Index:
        """The snapshot compiled, with those nodes leaving that disruption counts as leaving."""
        return Index(_as_placement_sees_it(self._fleet), placement_settings(self._fleet.settings))

    @cached_property
    def _promised(self) -> int:
        """The nodes whose room is promised, as bits of the table."""
        holds, table = self._fleet.promises.holds, self.index.table
        return sum(1 << bit for bit, item in enumerate(table.nodes) if holds(item.claim))

    @cached_property
    def _base(self) -> tuple[list[Pod], list[Pod]]:
        """Pods that need room whoever else goes: pending ones, and those of leaving nodes, unless they are seen to."""
        waiting, seen_to = self.index.waiting(), self._fleet.promises.pods
        pending = [pod for pod in (*waiting.pending, *waiting.spoken_for) if pod.uid not in seen_to]
        return pending, [pod for pod in waiting.leaving if pod.uid not in seen_to]

    @cached_property
    def _leaving_uids(self) -> frozenset[str]:
        return frozenset(pod.uid for pod in self._base[1])

    def simulate(self, candidates: Sequence[Candidate], *, consolidating: bool) -> Simulation:
        """The cluster without these nodes (D-82)."""
        if any(self._fleet.is_leaving(c.member) for c in candidates):
            return Simulation(candidate_leaves=True)
        moved = [pod for c in candidates for pod in self.movers(c)]
        pending, leaving = self._base
        pods = [*pending, *moved, *leaving]
        run = self.new_pass(candidates, pods, consolidating)
        run.run(pods)
        outcome = self.outcome(run, Since())
        return (
            self._own(outcome, {pod.key for pod in moved})
            if self._fleet.settings.profile.keeps_waiting_pods_apart
            else outcome
        )

    def _own(self, outcome: Simulation, moved: set[str]) -> Simulation:
        """Only what these nodes cause: new nodes that other pods need anyway are made by others, and not for this.

        Virtual pods that have their room now lose it to these nodes' pods, or with these nodes (S-215).
        """
        moved = moved.union(pod.key for pods in self._virtual.values() for pod in pods)
        unplaced = outcome.unplaced
        if any(pod not in moved for pod in unplaced):
            homeless = {refused.pod.key for refused in self._baseline.refused.values()}
            unplaced = {pod: why for pod, why in unplaced.items() if pod in moved or pod not in homeless}
        made = tuple(r for r in outcome.replacements if not moved.isdisjoint(r.pods))
        return replace(outcome, replacements=made, unplaced=unplaced)

    @cached_property
    def _baseline(self) -> Pass:
        """The cluster as it is: where pods go that have no place now."""
        run = self.new_pass((), self.base, consolidating=False)
        run.run(self.base)
        return run

    @cached_property
    def spoken_for(self) -> frozenset[str]:
        """The nodes where pods will land that have no place now: pending ones, and those of leaving nodes."""
        if not self.base:
            return frozenset()
        placed = self._placed(self._baseline, Since())
        return frozenset(self.index.table.nodes[bit].node_name for bit, _ in placed)

    @cached_property
    def _virtual(self) -> Mapping[str, list[Pod]]:
        """By node, the virtual pods that have room there as things stand."""
        if not self.index.virtual.pending:
            return {}
        found: dict[str, list[Pod]] = {}
        for bit, pods in self._placed(self._baseline, Since()):
            here = [pod for pod in pods if is_virtual(pod)]
            if here:
                found[self.index.table.nodes[bit].node_name] = here
        return found

    def virtual_on(self, candidate: Candidate) -> list[Pod]:
        """The virtual pods that have room on the candidate as things stand."""
        return self._virtual.get(candidate.name, [])

    @property
    def buffered(self) -> Mapping[str, int]:
        """D-68: by node, how many virtual pods have room there as things stand."""
        return {name: len(pods) for name, pods in self._virtual.items()}

    def is_hopeless(self, candidates: Sequence[Candidate]) -> bool:
        """Whether resources and list prices alone rule these nodes out: then why try."""
        return self._room.is_hopeless(candidates, self.movers)

    @cached_property
    def _room(self) -> Room:
        return Room(self.index, self._promised, self._prices)

    def wave(self, candidates: Sequence[Candidate]) -> "Wave":
        """The cluster without all of these, one after the other."""
        return PlacementWave(self, candidates)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """D-95: pools that have nothing to offer, as far as anything was simulated."""
        if "index" not in self.__dict__:
            return ()
        return tuple(no_compatible_types(e.pool.name, e.because_of_min_values) for e in self.index.empty_pools)

    @property
    def base(self) -> list[Pod]:
        """Pods that need room whoever else goes."""
        pending, leaving = self._base
        return [*pending, *leaving]

    def movers(self, candidate: Candidate) -> list[Pod]:
        """D-47: the candidate's pods that will need another place."""
        known = self._movers.get(candidate.name)
        if known is None:
            known = self._movers[candidate.name] = self.index.reschedulable_on(candidate.name)
        return known

    def new_pass(
        self,
        candidates: Sequence[Candidate],
        pods: Sequence[Pod],
        consolidating: bool,
        packing: Packing = emptiest_first,
    ) -> Pass:
        """A pass over the cluster without these nodes."""
        options = PassOptions(
            without=frozenset(c.name for c in candidates),
            strict_reservations=False,
            spare_settling_nodes=consolidating,
            should_stop=self._should_stop,
            packing=packing,
        )
        run = Pass(self.index, pods, options)
        run.nodes.active &= ~self._promised
        return run

    def outcome(self, run: Pass, since: "Since") -> Simulation:
        """What a pass came to since it was last looked at."""
        if not run.complete:
            return Simulation(failed="no time was left")
        unplaced = self._refused(run)
        unplaced.update(self._on_uninitialized(run, since))
        replacements: list[Replacement] = []
        for number in run.claims.order.in_order():
            if number < since.claims:
                continue
            finished = self._finisher.finish(run.claims.claims[number])
            if finished.node is None:
                message = "too few distinct values are left for minValues"
                unplaced.update({pod.key: message for pod in finished.claim.pods if not is_provisionable(pod)})
            else:
                replacements.append(_replacement(finished.node))
        return Simulation(replacements=tuple(replacements), moved=self._moved(run, since), unplaced=unplaced)

    def _refused(self, run: Pass) -> dict[str, str]:
        """D-90: only pods that run today matter; pending ones were without a place before."""
        running = [refused for refused in run.refused.values() if not is_provisionable(refused.pod)]
        explainer = Explainer(run) if running else None
        return {r.pod.key: _why(explainer.explain(r)) for r in running} if explainer else {}

    def _on_uninitialized(self, run: Pass, since: "Since") -> dict[str, str]:
        """D-89: a node that may never come up is no place, unless the pod's own node is leaving anyway."""
        found: dict[str, str] = {}
        for bit, pods in self._placed(run, since):
            item = self.index.table.nodes[bit]
            if item.initialized:
                continue
            claim = item.claim.name if item.claim else ""
            message = f"would schedule against uninitialized nodeclaim/{claim}, node/{item.node_name}"
            found.update({p.key: message for p in pods if p.uid not in self._leaving_uids and not is_provisionable(p)})
        return found

    def _placed(self, run: Pass, since: "Since") -> Iterator[tuple[int, list[Pod]]]:
        for bit, pods in sorted(run.nodes.placed.items()):
            fresh = pods[since.placed.get(bit, 0) :]
            if fresh:
                yield bit, fresh

    def _moved(self, run: Pass, since: "Since") -> Mapping[str, tuple[str, ...]]:
        """Where pods go; virtual ones nominate nothing (D-20)."""
        nodes = self.index.table.nodes
        placed = ((bit, [p.key for p in pods if not is_virtual(p)]) for bit, pods in self._placed(run, since))
        return {nodes[bit].name: tuple(sorted(keys)) for bit, keys in placed if keys}


@dataclass(frozen=True, slots=True)
class Since:
    """How far a pass had come when it was last looked at: claims, and pods per node."""

    claims: int = 0
    placed: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Pass) -> "Since":
        """Now."""
        return cls(len(run.claims.claims), {bit: len(pods) for bit, pods in run.nodes.placed.items()})


class PlacementWave:
    """One pass in which node after node gives up its pods. Claims of those before are closed to those after."""

    def __init__(self, simulator: PlacementSimulator, candidates: Sequence[Candidate]) -> None:
        self._simulator = simulator
        self._closed = 0
        movers = [pod for c in candidates for pod in simulator.movers(c)]
        # Room that a buffer has on a node moves with that node, whose replacement is made for it.
        theirs = {pod.uid for c in candidates for pod in simulator.virtual_on(c)}
        others = [pod for pod in simulator.base if pod.uid not in theirs]
        self._run = simulator.new_pass(candidates, [*simulator.base, *movers], False, self._packing)
        self._run.run(others)

    def _packing(self, nodes: NodePlacer, claims: ClaimPlacer, kind: Kind, pod: Pod) -> Verdict:
        kind.dead |= self._closed
        return emptiest_first(nodes, claims, kind, pod)

    def take(self, candidate: Candidate) -> Simulation:
        """Where this node's pods go, after all those that were taken before it."""
        since, run = Since.of(self._run), self._run
        self._closed = (1 << since.claims) - 1
        run.refused.clear()  # each node answers for its own pods only
        run.run([*self._simulator.movers(candidate), *self._simulator.virtual_on(candidate)])
        return self._simulator.outcome(run, since)


def placement_settings(settings: DisruptionSettings) -> PlacementSettings:
    """The placement engine's own choices that belong to ours."""
    return PlacementSettings(
        preference_policy=settings.preference_policy,
        default_spread=settings.default_spread,
        min_values_policy=settings.min_values_policy,
        reserved_capacity=settings.reserved_capacity,
        well_known=settings.well_known,
        fixes=settings.profile.placement,
    )


def _as_placement_sees_it(fleet: Fleet) -> Snapshot:
    """The snapshot with all claims named that disruption counts as leaving."""
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
