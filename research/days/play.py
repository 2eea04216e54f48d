"""Plays hours in seconds: the product decides, a model of the kube-scheduler binds, minute after minute.

There are no servers and no workflows. A claim becomes a node after a minute. A plan of disruption has its second look
after a minute instead of 15 s, its replacements come up, and then its pods are evicted at once; their owners make new
ones. What is left out is what every policy would meet alike: budgets of applications, failures, slow drains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from dovetail.disruption.choose import choose
from dovetail.disruption.methods.cheaper import CHEAPER
from dovetail.disruption.revalidate import Valid, look_again
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProposedNode
from dovetail.model import names
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.placement.settings import CostSettings, PlacementSettings
from dovetail.rules.brake.returned_moves import RETURNED, TAKEN, returned_nodes, with_moved
from research.days.bound import lowest
from research.days.fleet import Fleet
from research.days.load import HOUR, MINUTE, START, Load
from research.days.market import Market

DAY: Final = 86_400.0
INTERRUPTED: Final = 0.02  # of spot nodes, an hour
STARTING: Final = 15.0  # seconds from binding until a pod is ready
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is played."""

    cost: bool
    nominates: bool = True  # under the policy cost, pods to the new nodes planned for them
    follows: bool = False  # and those that owners make in place of planned ones as well
    hours: int = 24
    nodes: float = 200.0  # of 16 cpus, that the load fills at its peak
    steps: int = 30  # of a search for cheaper nodes, for each thousand of pods begun
    worth: float = DisruptionSettings().worth
    every: int = 5  # minutes between two decisions about disruption
    first_hour: int = 0
    seed: int = 1
    ties: int = 0  # another number: the kube-scheduler draws otherwise among nodes of one score
    deep: float = 1.0  # of each spot pool, the chance that the cloud has much capacity there; else it takes another one
    spot_chance: float = CostSettings().spot_chance  # what the policy believes of that
    slows: bool = False  # the NodePool remembers what consolidation took and what came back (decision 226)
    moves: bool = True  # False: nothing is disrupted, so that nodes stand until the cloud takes them
    spot_to_spot: bool = False  # the gate SpotToSpotConsolidation
    world: str = "day"  # whose load and rules: those of this module, or `vendor` (research.days.vendor)


@dataclass(slots=True)
class Figures:
    """What a play comes to. Lists are by hour."""

    dollars: list[float] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    pods: list[int] = field(default_factory=list)
    moved: int = 0
    launched: int = 0
    interrupted: int = 0
    unready_seconds: float = 0.0  # of pods that were evicted or interrupted
    pending_seconds: float = 0.0  # of pods that came
    came: int = 0
    undone: int = 0  # nodes of what their pods were moved away from within a day, to save money
    steps: dict[str, int] = field(default_factory=dict)  # commands carried out, by method


@dataclass(slots=True)
class Running:
    """A command that is carried out: its nodes leave when its replacements are up."""

    command: DisruptionCommand
    replacements: list[str]


class Play:
    """One play."""

    LOAD: ClassVar[type[Load]] = Load
    FLEET: ClassVar[type[Fleet]] = Fleet

    def __init__(self, course: Course) -> None:
        self.course = course
        # What the world does is drawn apart from what binding draws, so that each policy meets the same day.
        self._chance = np.random.default_rng(course.seed)
        self.market = Market(
            np.random.default_rng(course.seed + 1), course.deep, np.random.default_rng(course.seed + 4)
        )
        self.load = self.LOAD(course.nodes, np.random.default_rng(course.seed + 2))
        self.fleet = self.FLEET(self.market, np.random.default_rng(course.seed + (1000 * course.ties or 3)))
        cost = CostSettings(everywhere=course.cost, steps=course.steps, spot_chance=course.spot_chance)
        self._placement = PlacementSettings(cost=cost)
        self._disruption = DisruptionSettings(cost=cost, worth=course.worth, spot_to_spot=course.spot_to_spot)
        self._held: DisruptionPlan | None = None
        self._running: list[Running] = []
        self._displaced: set[str] = set()  # pods that an eviction or an interruption made pending
        self._plans = 0
        # By node, what its pods were moved away from to save money, and when: kept apart from the product's own memory.
        self._left: dict[str, dict[tuple[str, str], float]] = {}
        self.figures = Figures()

    def run(self, told: Told) -> Figures:
        """All of it; the first half hour, in which the cluster fills, is not counted."""
        first = self.course.first_hour * 60
        for minute in range(first - 30, first):
            self._minute(minute, minute == first - 30)
        self.figures = Figures()
        for minute in range(first, first + self.course.hours * 60):
            if minute % 60 == 0:
                self._begin_hour()
            self._minute(minute, False)
            self.figures.dollars[-1] += self.fleet.dollars() / 60
            if minute % 60 == 59:
                told(f"hour {minute // 60}: ${self.figures.dollars[-1]:.2f}, at least ${self.figures.lowest[-1]:.2f}")
        return self.figures

    def _begin_hour(self) -> None:
        self.market.pass_an_hour()
        found = self.figures
        found.dollars.append(0.0)
        found.lowest.append(self._lowest())
        found.nodes.append(len(self.fleet.nodes))
        found.pods.append(len(self.fleet.pods))

    def _lowest(self) -> float:
        """Dollars an hour that the pods of this moment cost at the least, wherever they are."""
        return lowest(self.load.groups(), self.market)

    def _minute(self, minute: int, is_first: bool) -> None:
        now = START + minute * MINUTE
        change = self.load.pass_a_minute(minute, now)
        self.figures.came += len(change.come)
        self.fleet.come(change.come, now)
        self.fleet.go([name for name in change.go if name in self.fleet.pods], now)
        self._interrupt(now)
        self.fleet.come_up(now)
        self._drain(now)
        self._bind(now)
        if self.fleet.pending:
            self._provision(now)
        self._look_again(now)
        if minute % self.course.every == 0 and not is_first:
            self._decide(now)

    def _bind(self, now: float) -> None:
        for name, waited in self.fleet.bind(now):
            if name in self._displaced:
                self._displaced.discard(name)
                self.figures.unready_seconds += waited + STARTING
            else:
                self.figures.pending_seconds += waited

    def _provision(self, now: float) -> None:
        snapshot = self.fleet.snapshot(now, self._taken())
        plan, _ = plan_provisioning(snapshot, self._placement, never)
        self._remember(RETURNED, returned_nodes(self._slowed(), len(plan.proposed), now), now)
        self._launch([(node, plan.type_lists[node.type_list]) for node in plan.proposed], self._plan_id(), now)

    def _launch(self, proposed: Sequence[tuple[ProposedNode, tuple[str, ...]]], plan: str, now: float) -> list[str]:
        self.figures.launched += len(proposed)
        launched = self.fleet.launch(proposed, plan, now)
        if self.course.cost and self.course.nominates:
            for (planned, _), name in zip(proposed, launched, strict=True):
                self.fleet.nominated |= {pod.uid: name for pod in planned.pods}
        return launched

    def _remember(self, what: str, nodes: int, now: float) -> None:
        """As the steps write it that delete nodes and that make them."""
        pool = self._slowed()
        if self.course.slows and nodes:
            self.fleet.pools[pool.name] = with_moved(pool, what, nodes, now)

    def _slowed(self) -> NodePool:
        """The first NodePool, the one that is consolidated."""
        return next(iter(self.fleet.pools.values()))

    def _plan_id(self) -> str:
        self._plans += 1
        return f"plan-{self._plans}"

    def _taken(self) -> frozenset[str]:
        """The claims of plans that wait and of those that run."""
        commands = [each.command for each in self._running]
        if self._held is not None:
            commands += self._held.commands
        return frozenset(t.claim for command in commands for t in command.targets)

    # --- disruption

    def _interrupt(self, now: float) -> None:
        """The cloud takes spot nodes back."""
        spot = [name for name, each in self.fleet.nodes.items() if each.key[2] == names.CAPACITY_SPOT and each.node]
        taken = [name for name in spot if self._chance.random() < INTERRUPTED * MINUTE / HOUR]
        for name in taken:
            self.figures.interrupted += 1
            self._evict(name, now)
            self._end(name, now)

    def _end(self, node: str, now: float) -> None:
        self.fleet.end(node)

    def _evict(self, node: str, now: float) -> int:
        return self._make_anew(sorted(self.fleet.nodes[node].pods), now)

    def _make_anew(self, pods: Sequence[str], now: float) -> int:
        """These are gone, and their owners make others in their place; how many."""
        again = [self.load.again(name) for name in pods]
        if self.course.follows:
            nominated = self.fleet.nominated
            nominated |= {new: nominated[old] for old, (new, _) in zip(pods, again, strict=True) if old in nominated}
        self.fleet.go(pods, now)
        self.fleet.come(again, now)
        self._displaced |= {name for name, _ in again}
        return len(pods)

    def _decide(self, now: float) -> None:
        if self._held is not None or not self.course.moves:
            return
        found = choose(self.fleet.snapshot(now, self._taken()), self._disruption, never)
        if not isinstance(found, DisruptionPlan):
            return
        if found.validate_after:
            self._held = found
        else:
            self._begin(found, now)

    def _look_again(self, now: float) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        found = look_again(held, Round(self.fleet.snapshot(now, self._taken()), self._disruption, never)).validity
        if isinstance(found, Valid):
            self._begin(found.plan, now)

    def _begin(self, plan: DisruptionPlan, now: float) -> None:
        for command in plan.commands:
            targets = [t.node for t in command.targets]
            if not all(name in self.fleet.nodes for name in targets):
                continue
            label = self._plan_id()
            made = [(node, plan.type_lists[node.type_list]) for node in command.replacements]
            launched = self._launch(made, label, now)
            if command.method == CHEAPER.name:
                self._note_moves(targets, launched, now)
            if command.reason == DisruptionReason.UNDERUTILIZED:
                self._remember(TAKEN, len(targets), now)
            self._running.append(Running(command, launched))
            self.fleet.close(targets, label)
            self.figures.steps[command.method] = self.figures.steps.get(command.method, 0) + 1

    def _note_moves(self, targets: Sequence[str], launched: Sequence[str], now: float) -> None:
        """What the pods of the new nodes were moved away from, and whether one of these nodes is just that again."""
        before: dict[tuple[str, str], float] = {}
        for name in targets:
            before.update({kind: at for kind, at in self._left.get(name, {}).items() if now - at < DAY})
        kinds = {name: (each.key[0], each.key[2]) for name, each in self.fleet.nodes.items()}
        self.figures.undone += sum(kinds[name] in before for name in launched)
        for name in launched:
            self._left[name] = before | {kinds[target]: now for target in targets}

    def _drain(self, now: float) -> None:
        """The pods of nodes whose replacements are up leave, and the nodes with them."""
        waiting: list[Running] = []
        for each in self._running:
            if not self._is_up(each):
                waiting.append(each)
                continue
            for name in (t.node for t in each.command.targets if t.node in self.fleet.nodes):
                self.figures.moved += self._evict(name, now)
                self._end(name, now)
        self._running = waiting

    def _is_up(self, running: Running) -> bool:
        """Whether the replacements take pods, those that are not gone by now."""
        return all(self.fleet.nodes[name].node is not None for name in running.replacements if name in self.fleet.nodes)
