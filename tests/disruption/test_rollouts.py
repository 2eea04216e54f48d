"""A NodeRollout lets so many nodes of its pool begin to leave for drift, whatever happens meanwhile, and goes on when
they have proved themselves."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import ceil, inf
from typing import Any, Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.disruption.choose import choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.gates import GateResult
from dovetail.model.own.rollouts import (
    BEGUN,
    REFUSED,
    Intent,
    NodesGate,
    PoolNodes,
    Rollout,
    RolloutFailure,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.own.stable_images import StableImage, StableImages
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.rollout.hold import left_of_rollouts
from dovetail.rules.rollout.moves import CONFIRMED, SETTLED, next_move
from dovetail.rules.rollout.nodes import nodes_of
from dovetail.rules.said import Cause, HeldBy
from worlds.disruption import HOUR, NOW, Pair, a_pair, a_pod, a_pool, a_world, condition
from worlds.made_claims import made_by
from worlds.time_rules import with_rules

SETTINGS: Final = DisruptionSettings()
POOL: Final = replace(a_pool(consolidate_after=None), hash="2")
STEPS: Final = (
    RolloutStep(name="canary", to="1", soak=600),
    RolloutStep(name="quarter", to="25%", soak=600),
    RolloutStep(name="rest", to="100%"),
)


KNOWN: Final = StableImages(since=NOW - 60, images=(StableImage(id="image-1", types=("m8",)),), why_not="")
PASSES: Final = NodesGate(result=GateResult.PASSING)
FAILS: Final = NodesGate(result=GateResult.FAILING, since=NOW - CONFIRMED, asked=NOW, message="pods are not ready")


def a_status(step: str = "canary", state: RolloutState = RolloutState.REPLACING, **also: object) -> RolloutStatus:
    found = RolloutStatus(step=step, state=state, since=NOW - 5, begun=NOW - 60, target="2", gate=PASSES)
    return replace(found, **also)  # type: ignore[arg-type]


def a_rollout(status: RolloutStatus | None = None, intent: Intent = Intent.RUN, fault: str = "") -> Rollout:
    status = a_status() if status is None else status
    return Rollout(name="r", created=NOW - 60, pool="a", steps=STEPS, intent=intent, fault=fault, status=status)


def rolling_out(old: int, at_target: int = 0, *rules: Rollout) -> Snapshot:
    pairs = [a_pair(f"old{n}", also=(names.DRIFTED,)) for n in range(old)]
    pairs += [a_pair(f"new{n}", claim={"created": NOW - 30}) for n in range(at_target)]
    return with_rules(a_world(pairs, [a_pod(f"old{n}") for n in range(old)], [POOL]), *rules)


def begun(world: Snapshot) -> int:
    choice = choose(world, SETTINGS, never)
    return len(choice.commands) if isinstance(choice, DisruptionPlan) else 0


@pytest.mark.parametrize(
    ("rollout", "at_target", "begin"),
    [
        (a_rollout(), 0, 1),
        (a_rollout(), 1, 0),
        (a_rollout(a_status("quarter")), 1, 2),  # a quarter of nine, rounded up
        (a_rollout(a_status("rest")), 1, 8),
        (a_rollout(a_status(state=RolloutState.SOAKING)), 0, 1),  # a canary is gone again
        (a_rollout(a_status(state=RolloutState.WAITING)), 0, 0),
        (a_rollout(RolloutStatus()), 0, 0),  # nothing has been written yet
        (a_rollout(a_status("of an earlier list")), 0, 0),
        (a_rollout(a_status("rest"), Intent.PAUSE), 0, 0),
        (a_rollout(a_status("rest"), Intent.ABORT), 0, 0),
        (a_rollout(a_status("rest"), fault="spec.steps: none"), 0, 0),
        (a_rollout(a_status("rest", gate=FAILS)), 1, 0),
        (a_rollout(a_status("rest", gate=FAILS), Intent.PROMOTE), 1, 8),  # whoever promotes has seen it
        (a_rollout(a_status("rest", gate=NodesGate())), 1, 8),  # of this step it holds nothing, of the next all
        (a_rollout(a_status("rest", target="1")), 0, 1),  # of another target nothing is known: its first step
        (a_rollout(a_status("rest", state=RolloutState.COMPLETE)), 0, 8),
        (replace(a_rollout(a_status(state=RolloutState.WAITING)), pool="b"), 0, 8),
        (replace(a_rollout(), pool="", fault="spec.nodePool: none"), 0, 0),
    ],
)
def test_a_decision_takes_as_many_as_the_step_leaves(rollout: Rollout, at_target: int, begin: int) -> None:
    assert begun(rolling_out(8, at_target)) == 8
    assert begun(rolling_out(8, at_target, rollout)) == begin


def test_of_several_the_strictest_holds_and_what_holds_is_named() -> None:
    narrow, wide = a_rollout(), replace(a_rollout(a_status("rest")), name="wide")
    assert begun(rolling_out(8, 0, narrow, wide)) == 1

    world = rolling_out(8, 1, a_rollout(a_status(state=RolloutState.SOAKING, until=NOW + 600)), wide)
    held = hold_of(said_in(world, "a"), Cause.DRIFTED)
    assert held is not None and (held.rule, held.why) == (HeldBy.ROLLOUT, WhyNot.ROLLOUT)
    assert held.message == (
        "no more for Drifted may begin for NodePool a by NodeRollout r: Soaking at step canary until "
        "2023-11-14T22:23:20Z, 1 of 9 nodes are at the target or on their way"
    )
    assert held.message in {answer.message for answer in explain_node(world, SETTINGS, "old0").methods}
    assert hold_of(said_in(world, "a"), Cause.EMPTY) is None and hold_of(said_in(world, "a"), Cause.EXPIRED) is None


def test_what_is_leaving_counts_once_with_its_replacement_and_what_is_not_known_to_have_drifted_counts() -> None:
    def marked(name: str, plan: str, **also: object) -> NodeClaim:
        annotations = {names.OWNER: f"cluster/disrupt/{plan}"}
        return a_pair(name, also=(names.DRIFTED,), claim={"annotations": annotations, **also}).claim

    def made(name: str, plan: str) -> NodeClaim:
        return a_pair(name, claim={"annotations": made_by(plan)}).claim

    unlike = a_pair("h", claim={"annotations": {names.NODE_POOL_HASH: "1", names.NODE_POOL_HASH_VERSION: "v3"}}).claim
    claims = (
        *(marked("o1", "p1"), made("n1", "p1")),  # a pair
        *(marked("o2", "p2"), marked("o3", "p2"), made("n2", "p2")),  # two of one plan, one replacement of two
        made("n4", "p4"),  # its old node is gone
        a_pair("o5", also=(names.DRIFTED,), claim={"deleting_since": NOW}).claim,  # a person's delete, an interruption
        a_pair("o6", also=(names.DRIFTED,)).claim,
        unlike,  # its condition is not written yet
        a_pair("elsewhere", pool="b").claim,
    )
    world = replace(rolling_out(0), claims={claim.name: claim for claim in claims})
    nodes = nodes_of(world, POOL)

    assert (nodes.old, nodes.at_target, nodes.leaving, nodes.taken, nodes.total) == (2, 3, 1, 4, 6)
    assert nodes.draining == 4, "whether their replacements are there or not"
    planned = replace(world, disrupting=frozenset({"claim-o6"}))
    assert nodes_of(planned, POOL).leaving == 2


@pytest.mark.parametrize(("reason", "step"), [("InstanceTypeNotFound", "rest"), ("SubnetDrift", "canary")])
def test_a_new_node_whose_type_is_no_longer_sold_is_no_other_target(reason: str, step: str) -> None:
    drifted = condition(names.DRIFTED, reason=reason, changed=NOW)
    pairs = [a_pair("old", also=(names.DRIFTED,)), a_pair("new", also=(drifted,), claim={"created": NOW - 30})]
    rollout = a_rollout(a_status("rest"))
    world = with_rules(a_world([*pairs, a_pair("other", claim={"created": NOW - 30})], pools=[POOL]), rollout)

    found = rollout_status(rollout, world, NOW)
    assert (found.step, found.begun) == (step, rollout.status.begun if step == "rest" else NOW)


@dataclass
class Play:
    """A pool through which a change goes, while everything happens that may. What is true of its nodes is kept beside
    the claims, so that the fraction is not measured by its own count."""

    chosen: random.Random
    scales: bool
    world: Snapshot
    now: float = NOW
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    on_way: dict[str, str] = field(default_factory=dict)  # replacement or plan -> the old claim
    most: int = 0

    @property
    def rollout(self) -> Rollout:
        return self.world.rollouts["r"]

    def claims(self) -> list[NodeClaim]:
        return list(self.world.claims.values())

    def put(self, *claims: NodeClaim, without: str = "") -> None:
        kept = {name: claim for name, claim in self.world.claims.items() if name != without}
        self.world = replace(self.world, now=self.now, claims={**kept, **{claim.name: claim for claim in claims}})

    def old(self, *, marked: bool) -> list[NodeClaim]:
        drifted = [claim for claim in self.claims() if claim.is_true(names.DRIFTED)]
        return [claim for claim in drifted if bool(claim.annotations.get(names.OWNER)) is marked]

    def new_claim(self, annotations: Mapping[str, str]) -> None:
        pair = a_pair(f"new{next(self.numbers)}", claim={"created": self.now, "annotations": annotations})
        self.world = replace(self.world, nodes={**self.world.nodes, pair.node.name: pair.node})
        self.put(pair.claim)

    def plan(self) -> None:
        """A decision of any Scheduler, and its marks."""
        left = left_of_rollouts(said_in(self.world, "a"), Cause.DRIFTED)
        assert not left or self.rollout.status.gate.result != GateResult.FAILING
        assert left is not None or self.rollout.status.state == RolloutState.COMPLETE
        old = self.old(marked=False)
        for claim in self.chosen.sample(old, min(len(old), left or 0)):
            owner = {names.OWNER: f"c/disrupt/p{next(self.numbers)}"}
            self.put(replace(claim, annotations=owner))
        if left:
            assert self.truth() <= self.bound()

    def launch(self) -> None:
        for claim in self.old(marked=True):
            plan = claim.annotations[names.OWNER].rpartition("/")[2]
            if self.chosen.random() < 0.5 and not self.made(plan):
                self.new_claim(made_by(plan))

    def made(self, plan: str) -> list[NodeClaim]:
        return [claim for claim in self.claims() if claim.plan == plan]

    def finish(self) -> None:
        """The old node goes after its replacement, or without one where its pods fit elsewhere."""
        for claim in self.old(marked=True):
            made = self.made(claim.annotations[names.OWNER].rpartition("/")[2])
            if made or (self.scales and self.chosen.random() < 0.2):
                self.put(without=claim.name)

    def undo(self) -> None:
        """A failure, a cancel, or a mark whose workflow is lost: the mark comes off, with or without its node."""
        for claim in self.old(marked=True):
            if self.chosen.random() < 0.5:
                for made in self.made(claim.annotations[names.OWNER].rpartition("/")[2]):
                    self.put(without=made.name)
                self.put(replace(claim, annotations={}))

    def scale(self) -> None:
        if self.scales and self.chosen.random() < 0.5:
            self.new_claim(made_by(f"s{next(self.numbers)}", reason="provisioned"))
        elif self.scales and len(self.world.claims) > 4:
            self.put(without=self.chosen.choice(self.claims()).name)

    def look(self) -> None:
        """Upkeep looks and writes; a worker that dies before it writes is a look that was not."""
        gate = self.chosen.choice([PASSES, PASSES, PASSES, NodesGate(), FAILS])
        seen = replace(self.rollout, status=replace(self.rollout.status, gate=gate))
        status = next_move(seen, POOL, nodes_of(self.world, POOL), self.now)
        self.world = replace(self.world, rollouts={"r": replace(self.rollout, status=status)})

    def truth(self) -> int:
        """Places of nodes at the target or on their way: a marked node with what replaces it is one."""
        plans = {claim.annotations[names.OWNER].rpartition("/")[2] for claim in self.old(marked=True)}
        target = [claim for claim in self.claims() if not claim.is_true(names.DRIFTED)]
        return len(plans) + sum(1 for claim in target if claim.plan not in plans)

    def bound(self) -> int:
        total = self.truth() + len(self.old(marked=False))
        step = next(step for step in STEPS if step.name == self.rollout.status.step)
        return ceil(int(step.to[:-1]) / 100 * total) if step.to.endswith("%") else int(step.to)


@pytest.mark.slow
@pytest.mark.parametrize("block", [*range(2), *[pytest.param(each, marks=pytest.mark.soak) for each in range(2, 20)]])
def test_no_beginning_ever_takes_more_than_the_step_in_two_thousand_plays(block: int) -> None:
    """And where nothing but the roll-out changes the pool, no more are at the target at any moment."""
    complete = 0
    for seed in range(100):
        chosen = random.Random(f"rollout {block} {seed}")
        world = rolling_out(chosen.randint(1, 12), 0, a_rollout(RolloutStatus()))
        play = Play(chosen, scales=chosen.random() < 0.5, world=world)
        acts = (play.plan, play.plan, play.launch, play.launch, play.finish, play.undo, play.scale, play.look)
        for _ in range(80):
            chosen.choice((*acts, play.look))()
            play.now += chosen.choice([0.0, 1.0, 30.0, 300.0])
            if not play.scales and play.rollout.status.state in BEGUN:
                assert play.truth() <= play.bound(), seed
        complete += play.rollout.status.state == RolloutState.COMPLETE
    assert complete  # the plays are not idle


# Of ten nodes: what a look at a step sees. A quarter of them is three.
SEEN: Final = {
    "nothing": PoolNodes(old=10),
    "leaving": PoolNodes(old=9, leaving=1),
    "unready": PoolNodes(old=9, at_target=1, refusable=1),
    "one": PoolNodes(old=9, at_target=1, refusable=1, ready=(NOW,)),
    "three": PoolNodes(old=7, at_target=3, refusable=3, ready=(NOW,) * 3),
    "all": PoolNodes(at_target=10, refusable=10, ready=(NOW,) * 10),
    "but one": PoolNodes(at_target=10, refusable=10, ready=(NOW,) * 9, unready=(-inf,)),
    "before": PoolNodes(at_target=10, refusable=10, ready=(NOW - 900,) * 10),
    "changed": PoolNodes(old=9, at_target=1, refusable=1, ready=(NOW,), newest_old=NOW),
}
# For each state (a soak that is over is another one) the answer to each of them: step and state, B for RollingBack, "="
# where it stays.
TABLE: Final = """
                  |nothing   |leaving   |unready   |one       |three     |all       |but one   |before    |changed
Waiting           |canary R  |canary R  |canary R  |canary R  |canary R  |=         |=         |=         |canary R
canary Replacing  |=         |=         |=         |canary S  |canary S  |canary S  |canary S  |=         |canary R
quarter Replacing |canary R  |=         |=         |=         |quarter S |quarter S |quarter S |=         |canary R
rest Replacing    |canary R  |quarter R |quarter R |quarter R |=         |rest C    |=         |=         |canary R
canary Soaking    |canary R  |canary R  |=         |=         |=         |=         |=         |=         |canary R
quarter Soaking   |canary R  |quarter R |quarter R |quarter R |=         |=         |=         |=         |canary R
rest Soaking      |canary R  |quarter R |quarter R |quarter R |rest R    |=         |=         |=         |canary R
canary Soaked     |canary R  |canary R  |canary J  |quarter R |quarter R |quarter R |canary J  |quarter R |canary R
quarter Soaked    |canary R  |quarter R |quarter R |quarter R |rest R    |rest R    |quarter J |rest R    |canary R
rest Soaked       |canary R  |quarter R |quarter R |quarter R |rest R    |rest C    |rest J    |rest C    |canary R
canary Judging    |canary R  |canary R  |=         |canary S  |canary S  |canary S  |=         |canary S  |canary R
quarter Judging   |canary R  |quarter R |quarter R |quarter R |quarter S |quarter S |=         |quarter S |canary R
rest Judging      |canary R  |quarter R |quarter R |quarter R |rest R    |rest S    |=         |rest S    |canary R
canary Awaiting   |canary R  |canary R  |canary J  |quarter R |quarter R |quarter R |canary J  |quarter R |canary R
quarter Awaiting  |canary R  |quarter R |quarter R |quarter R |rest R    |rest R    |quarter J |rest R    |canary R
rest Awaiting     |canary R  |quarter R |quarter R |quarter R |rest R    |rest C    |rest J    |rest C    |canary R
canary Paused     |canary R  |canary R  |canary J  |quarter R |quarter R |quarter R |canary J  |quarter R |canary R
quarter Paused    |canary R  |quarter R |quarter R |quarter R |rest R    |rest R    |quarter J |rest R    |canary R
rest Paused       |canary R  |quarter R |quarter R |quarter R |rest R    |rest C    |rest J    |rest C    |canary R
rest Complete     |=         |=         |=         |=         |=         |=         |=         |=         |=
rest RollingBack  |rest F    |rest F    |=         |=         |=         |=         |=         |=         |canary R
rest Failed       |=         |=         |rest B    |rest B    |rest B    |rest B    |rest B    |rest B    |canary R
"""
LINES: Final = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip("\n").splitlines()]
MOVES: Final = [
    (line[0], seen, answer) for line in LINES[1:] for seen, answer in zip(LINES[0][1:], line[1:], strict=True)
]


def at(place: str) -> RolloutStatus:
    step, _, state = place.rpartition(" ")
    if state == "Soaked":
        return a_status(step, RolloutState.SOAKING, until=NOW)
    until = NOW + 1 if state == "Soaking" else None
    failure = RolloutFailure(generation=0, message="pods are not ready") if RolloutState(state) in REFUSED else None
    return a_status(step, RolloutState(state), until=until, failure=failure, stable=KNOWN)


def letter(state: RolloutState) -> str:
    return "B" if state == RolloutState.ROLLING_BACK else state[0]


@pytest.mark.parametrize(("place", "seen", "answer"), MOVES)
def test_the_next_move_in_every_state_at_every_sight(place: str, seen: str, answer: str) -> None:
    rollout = a_rollout(at(place))
    found = next_move(rollout, POOL, SEEN[seen], NOW)

    expected = f"{rollout.status.step} {letter(rollout.status.state)}" if answer == "=" else answer
    assert f"{found.step} {letter(found.state)}" == expected
    assert (found == rollout.status) is (answer == "=")
    assert (found.until is not None) is (found.state == RolloutState.SOAKING)


@pytest.mark.parametrize("place", [line[0] for line in LINES[2:]])
def test_a_pool_without_nodes_proves_no_more_than_one_whose_nodes_are_all_of_before(place: str) -> None:
    """Nor is anything over there, unless a person promotes it."""
    empty, before = (next_move(a_rollout(at(place)), POOL, nodes, NOW) for nodes in (PoolNodes(), SEEN["nothing"]))
    assert (empty.step, empty.state) == (before.step, before.state)

    promoted = next_move(a_rollout(at("rest Replacing"), Intent.PROMOTE), POOL, PoolNodes(), NOW)
    assert promoted.state == RolloutState.COMPLETE


@pytest.mark.parametrize(("place", "seen", "answer"), MOVES)
def test_a_failing_gate_is_judged_in_every_state_and_an_unknown_one_passes_in_none(
    place: str, seen: str, answer: str
) -> None:
    def moved(gate: NodesGate) -> tuple[RolloutStatus, RolloutStatus]:
        status = replace(at(place), gate=gate)
        return status, next_move(a_rollout(status), POOL, SEEN[seen], NOW)

    known, found = moved(FAILS)
    if known.state not in BEGUN or seen == "changed":
        stays = f"{known.step} {letter(known.state)}"
        assert f"{found.step} {letter(found.state)}" == (answer if answer != "=" else stays)
    else:
        assert (found.step, found.state, found.until) == (known.step, RolloutState.JUDGING, None)
    known, found = moved(NodesGate())
    if known.state in BEGUN:
        order = [step.name for step in STEPS]
        assert order.index(found.step) <= order.index(known.step) and found.state != RolloutState.COMPLETE


def test_the_table_has_every_state_and_every_sight() -> None:
    places = {line[0] for line in LINES[1:]}
    begun_places = {f"{step.name} {state}" for step, state in product(STEPS, (*BEGUN, "Soaked"))}

    assert places == {"Waiting", "rest Complete", "rest RollingBack", "rest Failed", *begun_places}
    assert set(RolloutState) == {at(place).state for place in places}
    assert LINES[0][1:] == list(SEEN)


@pytest.mark.parametrize(("place", "seen"), [(place, seen) for place, seen, _ in MOVES])
@pytest.mark.parametrize("held", [Intent.PAUSE, Intent.ABORT, "fault"])
def test_nothing_goes_on_while_people_hold_it_or_it_cannot_be_read(place: str, seen: str, held: str) -> None:
    rollout = a_rollout(at(place), fault="spec: none") if held == "fault" else a_rollout(at(place), Intent(held))

    assert next_move(rollout, POOL, SEEN[seen], NOW) == rollout.status


def test_a_drain_that_something_holds_holds_no_step_but_the_end() -> None:
    """Its replacement is there and proves the change; "Complete" says that no node of before is left."""
    one, every = replace(SEEN["one"], draining=1), replace(SEEN["all"], draining=1)

    assert next_move(a_rollout(a_status("canary")), POOL, one, NOW).state == RolloutState.SOAKING
    assert next_move(a_rollout(a_status("rest")), POOL, every, NOW).state == RolloutState.REPLACING
    assert next_move(a_rollout(a_status("rest")), POOL, SEEN["all"], NOW).state == RolloutState.COMPLETE


def test_a_promoted_one_goes_to_its_last_step_and_stays_there() -> None:
    def promoted(place: str, seen: str) -> str:
        found = next_move(a_rollout(at(place), Intent.PROMOTE), POOL, SEEN[seen], NOW)
        return f"{found.step} {found.state}"

    assert promoted("canary Soaking", "one") == "rest Replacing"
    assert promoted("rest Replacing", "nothing") == "rest Replacing"
    assert promoted("rest Replacing", "all") == "rest Complete"
    assert promoted("rest Soaking", "changed") == "canary Replacing"


def test_promote_is_an_order_for_the_target_of_its_moment_and_not_for_the_next() -> None:
    """The next image of an alias goes by its canary, soak and gates, whatever else of the object is changed."""
    image_drift = condition(names.DRIFTED, reason="AMIDrift", changed=NOW)
    pods = [a_pod(f"n{n}") for n in range(8)]
    seen = a_world([a_pair(f"n{n}", also=(image_drift,)) for n in range(8)], pods, [POOL])

    def looked(rollout: Rollout, makes: str = "image-3") -> Rollout:
        return replace(rollout, status=rollout_status(rollout, with_rules(seen, rollout), NOW, makes))

    promoted = replace(a_rollout(a_status("rest", makes="image-2"), Intent.PROMOTE), rolls_back=True)
    assert begun(with_rules(seen, looked(promoted, "image-2"))) == 8
    other = looked(looked(looked(promoted)))
    assert (other.status.step, other.status.state) == ("canary", RolloutState.REPLACING)
    assert begun(with_rules(seen, other)) == begun(with_rules(seen, replace(other, generation=7))) == 1
    failing = replace(other, status=replace(other.status, gate=FAILS))
    assert failing.is_held and begun(with_rules(seen, failing)) == 0

    paused = looked(replace(other, intent=Intent.PAUSE))  # the order is given anew
    assert looked(replace(paused, intent=Intent.PROMOTE)).status.step == "rest"
    waiting = replace(promoted, status=RolloutStatus())  # it was made with that order
    assert looked(looked(waiting)).status.step == "rest"


def test_a_step_without_a_soak_goes_on_in_the_look_that_finds_it_reached() -> None:
    """A look and a write less; what else holds the next step holds it as after a soak."""
    steps = tuple(replace(step, soak=0.0) for step in a_rollout(at("canary Replacing")).steps)

    def after(**fields: Any) -> str:
        rollout = replace(replace(a_rollout(at("canary Replacing")), steps=steps), **fields)
        found = next_move(rollout, POOL, SEEN["one"], NOW + 0.5)
        return f"{found.step} {found.state}"

    assert after() == "quarter Replacing"
    assert after(steps=(replace(steps[0], approve=3600.0), *steps[1:])) == "canary Awaiting"
    unknown = replace(at("canary Replacing"), gate=NodesGate(message="no pod is ready yet"))
    assert after(status=unknown) == "canary Soaking"
    assert after(intent=Intent.PAUSE) == "canary Replacing"


@pytest.mark.parametrize("made", [NOW - 2 * HOUR, NOW - 60])
@pytest.mark.parametrize(
    "status",
    [
        RolloutStatus(target=POOL.target, makes="x/image-1"),  # it waits
        a_status("rest", target="2", makes="x/image-1", begun=NOW - HOUR),
    ],
)
def test_nodes_that_were_there_before_the_change_prove_no_step_of_it(status: RolloutStatus, made: float) -> None:
    """Of them it is known one by one that they have drifted; the NodeRollout may be older than they are."""
    steps = tuple(replace(step, soak=0.0) for step in STEPS)
    rollout = replace(a_rollout(status), steps=steps, created=made)
    nodes = [a_pair(f"n{n}", claim={"created": NOW - 600}) for n in range(20)]
    drifted = [a_pair(f"n{n}", also=(names.DRIFTED,), claim={"created": NOW - 600}) for n in range(20)]
    pods = [a_pod(f"n{n}") for n in range(20)]

    for _ in range(4):
        world = with_rules(a_world([drifted[0], *nodes[1:]], pods, [POOL]), rollout)
        rollout = replace(rollout, status=rollout_status(rollout, world, NOW, "x/image-2"))
    assert (rollout.status.step, rollout.status.state) == ("canary", RolloutState.REPLACING)
    assert begun(with_rules(a_world(drifted, pods, [POOL]), rollout)) == 1


def test_a_changed_list_and_nodes_of_before_are_taken_as_they_are_known() -> None:
    gone = next_move(a_rollout(a_status("gone")), POOL, SEEN["three"], NOW)
    assert (gone.step, gone.state, gone.begun) == ("canary", RolloutState.REPLACING, NOW - 60)

    before = a_rollout(a_status(since=NOW - SETTLED))
    assert next_move(before, POOL, SEEN["before"], NOW).state == RolloutState.SOAKING


LOST: Final = condition(names.READY, NOW + 600, status="False")


@pytest.mark.parametrize(
    ("beside", "place"),
    [
        (a_pair("n", claim={"created": NOW + 60}), "quarter Replacing"),
        (a_pair("n", claim={"created": NOW + 60}, node={"conditions": (LOST,)}), "canary Judging"),
        (a_pair("n", claim={"created": NOW + 60, "conditions": ()}), "canary Judging"),  # it has never joined
        (a_pair("n", claim={"created": NOW + 600, "conditions": ()}), "quarter Replacing"),  # it comes for pods of now
        (
            a_pair("n", claim={"created": NOW + 60, "deleting_since": NOW + 600}, node={"conditions": (LOST,)}),
            "quarter Replacing",
        ),
    ],
)
def test_a_step_passes_while_every_node_that_came_to_the_target_is_ready_still(beside: Pair, place: str) -> None:
    """However few the step asked for, and however many came for pods beside them."""
    old = [a_pair(f"old{n}", also=(names.DRIFTED,)) for n in range(8)]
    rollout = a_rollout(RolloutStatus())
    for minute in range(13):
        now = NOW + 60 * minute
        came = [each for each in (a_pair("new", claim={"created": NOW + 60}), beside) if each.claim.created <= now]
        world = with_rules(replace(a_world([*old, *came], pools=[POOL]), now=now), rollout)
        rollout = replace(rollout, status=rollout_status(rollout, world, now))

    assert f"{rollout.status.step} {rollout.status.state}" == place
