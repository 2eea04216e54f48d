"""NodeRollouts: how far a change may reach the nodes of one NodePool, step by step.

The rule is a fraction that is worked out from the cluster and the object each time: that many of the pool's nodes may
be at the target, or on their way to it. So no dead worker, lost database or second look can take more than the step. An
unreadable object lets none leave.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Annotated, Final

from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.own.claim_memory import BACK, STABLE, Pin, memory_of
from dovetail.model.own.forms import NOWHERE, Key, Moment, MomentIfEver, Seconds, between, yes
from dovetail.model.own.gates import AskedGate, GateResult, GateVerdict, worst
from dovetail.model.own.rollout_approvals import Answered, Approval, Awaits
from dovetail.model.own.rollout_places import RolloutBasis, RolloutPlace
from dovetail.model.own.stable_images import NOTHING_KNOWN, StableImages
from dovetail.model.pools import NodePool
from dovetail.model.values.hashing import is_other
from dovetail.model.values.time import format_time

_OWN: Final = "drifted"  # for which it makes claims itself


class Intent(StrEnum):
    RUN = "Run"
    PAUSE = "Pause"  # no further node begins, and no further step
    ABORT = "Abort"  # likewise, until somebody says otherwise
    PROMOTE = "Promote"  # the last step at once
    ROLL_BACK = "RollBack"  # nodes at the target are replaced by nodes as before


class Order(StrEnum):
    """The order in which a step takes its nodes."""

    AGE = "Age"  # the oldest
    ZONE = "Zone"  # one zone after another, the oldest of each first


class RolloutState(StrEnum):
    WAITING = "Waiting"  # for a change
    REPLACING = "Replacing"
    SOAKING = "Soaking"
    JUDGING = "Judging"  # a node at the target is not ready after its soak, or a gate fails
    AWAITING = "Awaiting"  # a person's approval of the next step
    PAUSED = "Paused"  # nobody answered in time
    COMPLETE = "Complete"
    ROLLING_BACK = "RollingBack"  # nodes at the target leave
    FAILED = "Failed"  # no node is at the target, and none will be


REFUSED: Final = frozenset({RolloutState.ROLLING_BACK, RolloutState.FAILED})
NODES: Final = "nodes"  # the name of the gate that every roll-out has
NODES_GATE: Final = AskedGate(name=NODES)  # looked at every minute, it counts for as long as one that is asked so often
LOOKED_FOR: Final = 1500.0  # seconds for which the gate `nodes` lets nodes begin; that it passes is written rarely
STAY: Final = "; its nodes stay, because "  # in the message of a failure, where there is no way back
MAX_STABLE_AGE: Final = 30 * 86_400.0
BEGUN: Final = frozenset(
    {
        RolloutState.REPLACING,
        RolloutState.SOAKING,
        RolloutState.JUDGING,
        RolloutState.AWAITING,
        RolloutState.PAUSED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesGate:
    """What the gate `nodes` says: whether pods run as well on nodes at the target as on the others. `since`: since when
    some do not; `asked`: when that was seen last, to the minute."""

    result: GateResult = GateResult.UNKNOWN
    since: Moment | None = None
    message: str = ""
    asked: MomentIfEver = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesRule:
    """How strict the gate `nodes` is: by how many more pods an owner may do worse, as a number or as a percentage of
    those that it wants; the larger counts."""

    pods: Annotated[int, Key("tolerance.pods")] = 0
    percent: Annotated[int, Key("tolerance.percent")] = 0
    enabled: Annotated[bool, Key(always=True)] = True

    def tolerates(self, wanted: int) -> int:
        return max(self.pods, self.percent * wanted // 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStep:
    """How many nodes a step takes, as a number or a percentage of the pool's, and how long they prove themselves.
    `approve`: how many seconds a person has to let the next step begin; None if nobody is asked."""

    name: str
    to: str
    soak: Seconds = 0.0
    approve: Annotated[Seconds | None, Key("approve.expiresAfter")] = None

    def allows(self, total: int) -> int:
        """How many of that many nodes; a percentage is rounded up."""
        return -(-int(self.to[:-1]) * total // 100) if self.to.endswith("%") else min(int(self.to), total)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFailure:
    """Why the target, or an earlier one, is refused. `generation`: of the object then; a later one is a person's
    answer."""

    generation: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStrategy:
    """How a change goes on: a DisruptionPolicy says it for every change, a NodeRollout for its own."""

    steps: tuple[RolloutStep, ...] = ()
    # Whether launches take the images of before, but for its own; whether it goes back by itself where it fails.
    launches_stable: Annotated[bool, Key("newLaunches"), yes("Stable", "Target")] = False
    rolls_back: Annotated[bool, Key("onFailure"), yes("RollBack", "Pause")] = False
    longest_stable: Annotated[Seconds, Key("maxStableAge")] = MAX_STABLE_AGE
    gates: tuple[AskedGate, ...] = ()  # beside `nodes`
    order: Order = Order.AGE
    longest: Annotated[Seconds | None, Key("maxDuration")] = None  # after which it stops until a person decides
    nodes_rule: Annotated[NodesRule | None, Key("nodesGate")] = None
    # After how many seconds without one more node it is Stalled; None: after an hour.
    stands_for: Annotated[float | None, Key("progressDeadline"), between("10m", "720h")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan(RolloutStrategy):
    """What a DisruptionPolicy says about changes of its NodePools. `drifted`: how many nodes, as in a step, make
    one."""

    drifted: Annotated[str, Key("when.drifted")] = "1"

    def needs(self, total: int) -> int:
        """How many drifted nodes a pool of that size needs."""
        share = self.drifted.endswith("%")
        return RolloutStep(name="", to=self.drifted).allows(total) if share else int(self.drifted)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRollout:
    """A NodeRollout to make by a policy, of the pool's change."""

    name: str
    pool: str
    pool_uid: str
    policy: str
    plan: RolloutPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """How one step went. `ended`: None while it goes on, without a result."""

    step: str
    began: Moment
    ended: Moment | None = None
    result: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStatus:
    """Its status. `begun`: since when it has rolled out its current target; `until`: when a soak is over."""

    step: Annotated[str, Key("step.name", always=True)] = ""
    state: Annotated[RolloutState, Key("step.state")] = RolloutState.WAITING
    since: Annotated[Moment, Key("step.since")] = 0.0
    until: Annotated[Moment | None, Key("step.until")] = None
    begun: Annotated[Moment, Key("target.begun")] = 0.0
    target: Annotated[str, Key("target.nodePoolHash", always=True)] = ""
    total: Annotated[int, Key("nodes.total", always=True)] = 0
    at_target: Annotated[int, Key("nodes.target", always=True)] = 0
    leaving: Annotated[int, Key("nodes.leaving", always=True)] = 0
    gate: Annotated[NodesGate, NOWHERE] = NodesGate()  # among the others
    asked: Annotated[tuple[GateVerdict, ...], Key("gates")] = ()  # of the other gates
    owners: str = ""  # how owners of pods fared when the step began (rules/rollout/before.py)
    history: tuple[Passage, ...] = ()  # the latest last
    makes: Annotated[str, Key("target.launches")] = ""  # what the NodeClass makes of a launch; empty if unknown
    stable: StableImages = NOTHING_KNOWN
    failure: RolloutFailure | None = None
    promoted_before: bool = False  # whether its intent Promote was given for an earlier target
    awaits: Awaits | None = None
    answered: Answered | None = None
    conditions: tuple[Condition, ...] = ()
    fault: Annotated[str, NOWHERE] = ""  # what of it cannot be read, if anything: then it is left as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout(RolloutStrategy):
    """One NodeRollout. `pool`: empty if it cannot be read; then it is about every NodePool."""

    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created: float = 0.0
    pool: Annotated[str, Key("nodePool")] = ""
    intent: Intent = Intent.RUN
    fault: str = ""
    status: RolloutStatus = RolloutStatus()
    policy: str = ""  # by which it was made; empty if a person made it
    approval: Approval | None = None

    def is_about(self, pool: str) -> bool:
        """Whether it holds nodes of that pool back; one that is complete holds none any more."""
        return self.pool in ("", pool) and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether it holds nothing back any more."""
        return not self.fault and self.status.state == RolloutState.COMPLETE

    @property
    def place(self) -> RolloutPlace:
        status = self.status
        return RolloutPlace(
            rollout=self.name,
            uid=self.uid,
            pool=self.pool,
            target=status.target,
            makes=status.makes,
            goes_back=self.goes_back,
            step=status.step,
            to=next((step.to for step in self.steps if step.name == status.step), ""),
            begun=status.begun,
        )

    def why_other(self, basis: RolloutBasis) -> str:
        """Why a replacement decided on that basis is no longer made; empty if it is. A step that has changed since is
        no reason: it was permitted, and is counted."""
        if self.status.state in REFUSED:  # else it takes an image of before
            return f"NodeRollout {self.name} refuses the target" if self.status.stable.why_not else ""
        return "" if basis.has_target_of(self.place) else f"NodeRollout {self.name} has another target since"

    @property
    def _begun(self) -> bool:
        return self.status.state in BEGUN

    @property
    def is_stopped(self) -> bool:
        """Whether it neither lets a node begin nor goes on, until a person or a change resumes it."""
        return bool(self.fault) or self.wants not in (Intent.RUN, Intent.PROMOTE) or self.status.state not in BEGUN

    @property
    def wants(self) -> Intent:
        """Its intent. An order to go back, or to promote, applies to the target of that moment, not to the next one,
        whatever else in the object changes."""
        is_earlier = {Intent.ROLL_BACK: self.has_gone_back, Intent.PROMOTE: self.status.promoted_before}
        return Intent.RUN if is_earlier.get(self.intent) else self.intent

    @property
    def has_gone_back(self) -> bool:
        """Whether an earlier target was refused, and people have not changed their intent since."""
        return self.status.failure is not None and self.status.state not in REFUSED

    @property
    def goes_back(self) -> bool:
        """Whether nodes at its target leave, and no others."""
        return self.status.state == RolloutState.ROLLING_BACK and not self.keeps_all

    @property
    def keeps_all(self) -> bool:
        """Whether a person or a fault keeps every node of its pool from leaving for a change, forth or back."""
        return bool(self.fault) or self.intent in (Intent.PAUSE, Intent.ABORT)

    @property
    def keeps_images(self) -> bool:
        """Whether launches take the images of before: once every node may be replaced, one would be made only for
        that."""
        status = self.status
        step = next((each for each in self.steps if each.name == status.step), None)
        is_open = step is not None and 0 < status.total <= step.allows(status.total) and not self.is_held
        keeps = self.launches_stable and self._begun and not is_open
        return (status.state in REFUSED or keeps) and not status.stable.why_not

    def pin(self, reason: str) -> Pin | None:
        """What it wants of a claim made for that reason; None if that takes what its NodeClass makes."""
        images = self.status.stable.images
        if reason != _OWN:
            return Pin(how=STABLE, images=images) if self.keeps_images else None
        if self.status.state in REFUSED and not self.status.stable.why_not:
            return Pin(how=BACK, images=images)
        return Pin(target=self.status.makes) if self.status.makes and self._begun else None

    @property
    def verdicts(self) -> tuple[GateVerdict, ...]:
        """What each gate says, `nodes` first; one that was never asked is Unknown."""
        known, nodes = {each.name: each for each in self.status.asked}, self.status.gate
        first = GateVerdict(
            name=NODES, result=nodes.result, asked=nodes.asked, since=nodes.since, message=nodes.message
        )
        return (first, *(known.get(gate.name, GateVerdict(name=gate.name)) for gate in self.gates))

    @property
    def verdict(self) -> GateVerdict:
        """The worst of them, which counts."""
        return worst(self.verdicts)

    @property
    def doubts(self) -> str:
        """The objection of the worst of them, for people."""
        verdict = self.verdict
        if verdict.result == GateResult.PASSING:
            return ""
        return verdict.message if verdict.name == NODES else verdict.words

    @property
    def is_failing(self) -> bool:
        """Whether a gate holds it; a person who promotes it has seen that."""
        return self.verdict.result == GateResult.FAILING and self.wants != Intent.PROMOTE

    @property
    def passes(self) -> bool:
        """Whether all gates let the next step begin."""
        return self.verdict.result == GateResult.PASSING or self.wants == Intent.PROMOTE

    @property
    def is_held(self) -> bool:
        """Whether it lets no node begin, however many are at the target. While the gate `nodes` is Unknown only the
        next step is held; while one of the others is, everything."""
        if self.goes_back:
            return False
        blind = any(each.result != GateResult.PASSING for each in self.verdicts[1:])
        return self.is_stopped or self.is_failing or (blind and self.wants != Intent.PROMOTE)

    def overdue_at(self) -> float:
        """When it stops because it has taken too long."""
        return inf if self.longest is None or self.wants == Intent.PROMOTE else self.status.begun + self.longest

    def why_not_now(self, now: float) -> str:
        """Why time alone forbids further nodes: it has taken too long, or a gate's verdict is too old."""
        if self.goes_back or self.wants == Intent.PROMOTE or self.status.state not in BEGUN:
            return ""
        if now >= self.overdue_at():
            return f"it has gone on since {format_time(self.status.begun)}, longer than its maxDuration"
        looked = self.status.gate.asked
        if looked and now - looked > LOOKED_FOR:
            return f"gate {NODES} is Unknown: nobody has looked at pods since {format_time(looked)}"
        known = {each.name: each for each in self.status.asked}
        return next((why for gate in self.gates if (why := gate.why_not(known.get(gate.name), now))), "")

    def step(self, pool: NodePool, nodes: "PoolNodes") -> RolloutStep | None:
        """The step that is permitted: the one in its status, by name, because people may change the list meanwhile. The
        first for a target about which nothing is known."""
        if self.is_held or self.goes_back:
            return None
        if self.has_changed(pool, nodes):
            return self.steps[0]
        return next((step for step in self.steps if step.name == self.status.step), None)

    def has_changed(self, pool: NodePool, nodes: "PoolNodes") -> bool:
        """Whether the pool's target differs from the one that is rolled out: by its hash, by what its NodeClass makes
        of a launch or, where that has never been known, by a drifted node that was made after the beginning. A node
        may drift for a reason of its own, and a launch for another target is refused in any case."""
        if is_other(pool.target, self.status.target):
            return True
        if not self.status.makes:
            return nodes.newest_old > self.status.begun
        return bool(nodes.makes) and is_other(nodes.makes, self.status.makes)

    def left(self, pool: NodePool, nodes: "PoolNodes") -> int:
        """How many more nodes may begin."""
        if self.goes_back:
            return nodes.refusable
        step = self.step(pool, nodes)
        return max(0, step.allows(nodes.total) - nodes.taken) if step is not None else 0

    @property
    def words(self) -> str:
        if self.fault:
            return f"it cannot be understood: {self.fault}"
        if self.intent in (Intent.PAUSE, Intent.ABORT):
            return f"its intent is {self.intent}"
        if self.status.failure is not None and self.status.state in REFUSED:
            return f"{self.status.state}: {self.status.failure.message}"
        place = f" at step {self.status.step}" if self.status.step else ""
        gate = f", as {self.doubts}" if self.doubts else ""
        return f"{self.status.state}{place}{gate}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNodes:
    """The nodes of a pool by their relation to its latest change. A leaving node and its replacement count once."""

    old: int = 0  # and staying
    at_target: int = 0
    leaving: int = 0  # not at the target, without a replacement yet
    draining: int = 0  # not at the target and leaving, whether a replacement is there or not
    newest_old: float = -inf  # when the youngest that is not at the target was made; not of older images on purpose
    ready: tuple[float, ...] = ()  # when each node that is ready at the target was made
    unready: tuple[float, ...] = ()  # when each of the others there was made, -inf if it has been ready before
    refusable: int = 0  # certainly at the target, including those that are being deleted
    makes: str = ""  # what their NodeClass makes of a launch, for upkeep alone
    returned: bool = False  # whether the target is what they ran before the first change, likewise
    staying: tuple[str, ...] = ()  # the UIDs of the old ones
    changed: int = 0  # those of them that are not at the target because somebody has changed it
    newest_drift: float = -inf  # when the last one was found to have drifted

    @property
    def taken(self) -> int:
        """How many are at the target or on their way to it. A node not known to have drifted counts."""
        return self.at_target + self.leaving

    @property
    def total(self) -> int:
        return self.old + self.taken


def is_of_target(claim: NodeClaim, pool: NodePool, rollouts: Iterable[Rollout]) -> bool:
    """Whether how a claim fares says something of what the pool is to become: it has the same template and, where a
    roll-out made it, that roll-out's target of now."""
    target, aims = memory_of(claim.annotations).roll_out.target, {each.status.makes for each in rollouts}
    is_aim = not target or not aims or any(not aim or not is_other(aim, target) for aim in aims)
    return is_aim and claim.annotations.get(names.NODE_POOL_HASH, "") == pool.annotations.get(names.NODE_POOL_HASH, "")


def pin_of(rollouts: Iterable[Rollout], reason: str) -> Pin | None:
    """What a claim says that is made for that reason under these roll-outs of its pool. One that refuses the target is
    asked first: by another one a node that is taken back would be replaced by one at the target."""
    refusing_first = sorted(rollouts, key=lambda each: each.status.state not in REFUSED)
    return next(filter(None, (each.pin(reason) for each in refusing_first)), None)
