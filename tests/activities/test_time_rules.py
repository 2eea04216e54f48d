"""What upkeep writes about DisruptionPolicies, Freezes and NodeRollouts; a mark asks the API server for them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.disruption.mark_and_unmark_nodes import MarkAndUnmarkNodes
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.upkeep.rollouts import RolloutUpkeep
from dovetail.activities.upkeep.time_rules import TimeRuleUpkeep
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.plans import Seen
from dovetail.messages.requests import MarkRequest
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim, NodeClassRef
from dovetail.model.own.gates import GateResult
from dovetail.model.own.health import HealthRule
from dovetail.model.own.openings import Window
from dovetail.model.own.policies import Freeze, Policy, PolicyStatus, TimeRules
from dovetail.model.own.rates import Rate
from dovetail.model.own.rollout_approvals import Answered, Approval
from dovetail.model.own.rollouts import (
    Intent,
    NewRollout,
    NodesGate,
    Rollout,
    RolloutPlan,
    RolloutState,
    RolloutStatus,
    RolloutStep,
)
from dovetail.model.own.stable_images import StableImage
from dovetail.model.pools import DisruptionPolicy
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import parse_time
from dovetail.ports.cloud import NodeClassState
from dovetail.ports.failures import Forbidden, Unreachable
from dovetail.ports.objects import MetadataChange
from dovetail.rules.rate.rates import BegunNodes, with_begun
from dovetail.rules.said import Cause, HeldBy
from tests.activities.test_gated_orders import OnePool
from tests.activities.test_pauses import COMMAND, a_joined_world, marked, pauses
from tests.lifecycle.objects import a_joined_claim, a_joined_node, target_of
from worlds.disruption import ALL, a_pair, a_pool, condition
from worlds.fakes import FakeCatalogues, FakeClaims, FakeNotices, World, mark_ports, unasked
from worlds.time_rules import with_rules

NOON = parse_time("2026-06-01T12:00:00Z")
NIGHT = Window(start=22 * 3600, end=5 * 3600, reasons=frozenset({"Drifted"}))


class Written:
    """The port, which keeps what is written, and answers with what it was told."""

    def __init__(self, rules: TimeRules | None = None) -> None:
        self.rules = rules
        self.statuses: dict[str, PolicyStatus] = {}
        self.conditions: dict[str, tuple[Condition, ...]] = {}
        self.rollouts: dict[str, RolloutStatus] = {}
        self.made: list[NewRollout] = []
        self.deleted: list[str] = []

    async def read(self, _: str) -> TimeRules:
        if self.rules is None:
            raise Forbidden("Freeze", "forbidden")
        return self.rules

    async def patch_policy(self, policy: Policy, status: PolicyStatus) -> Policy:
        self.statuses[policy.name] = status
        return replace(policy, status=status)

    async def patch_freeze(self, freeze: Freeze, conditions: tuple[Condition, ...]) -> Freeze:
        self.conditions[freeze.name] = conditions
        return replace(freeze, conditions=conditions)

    async def patch_rollout(self, rollout: Rollout, status: RolloutStatus) -> Rollout:
        self.rollouts[rollout.name] = status
        return replace(rollout, status=status)

    async def create_rollout(self, new: NewRollout) -> None:
        self.made.append(new)

    async def delete_rollout(self, rollout: Rollout) -> None:
        self.deleted.append(rollout.name)

    async def patch_approval(self, rollout: Rollout, approval: Approval) -> Rollout:
        return replace(rollout, approval=approval)

    async def patch_intent(self, rollout: Rollout, intent: Intent) -> Rollout:
        return replace(rollout, intent=intent)


def a_ruled_cluster(*rules: Policy | Freeze | Rollout, now: float = NOON) -> Snapshot:
    return with_rules(Snapshot(now=now, pools={"default": a_pool("default")}), *rules)


async def looked(*rules: Policy | Freeze | Rollout, now: float = NOON) -> tuple[Written, float | None]:
    written = Written()
    look = await TimeRuleUpkeep(
        written, lambda: now, catalogues=FakeCatalogues(), notices=FakeNotices(World()), questions=unasked()
    ).look(a_ruled_cluster(*rules, now=now))
    for write in look.due:
        await write()
    return written, look.again


async def test_a_policy_says_what_it_selects_what_is_open_and_until_when() -> None:
    policy = Policy(name="p", generation=3, allow=(NIGHT,))
    written, again = await looked(policy)
    status = written.statuses["p"]

    [opening] = status.openings
    assert (status.pools, opening.reason, opening.open, opening.why) == (
        ("default",),
        "Drifted",
        False,
        "outside allow[0]",
    )
    assert opening.until == again == parse_time("2026-06-01T22:00:00Z")
    assert [(c.type, c.status, c.generation) for c in status.conditions] == [("Ready", "True", 3)]

    same, _ = await looked(replace(policy, status=status), now=NOON + 60)
    assert same.statuses == {}  # nothing has changed
    later, _ = await looked(replace(policy, status=status), now=parse_time("2026-06-01T22:00:00Z"))
    assert later.statuses["p"].openings[0].open
    assert later.statuses["p"].conditions == status.conditions


async def test_a_policy_says_what_of_its_rates_is_taken_and_looks_again_when_that_becomes_less() -> None:
    policy = Policy(name="p", rates=(Rate(nodes="2", per=3600), Rate(nodes="5", per=60, reasons=frozenset({"Empty"}))))
    begun = with_begun(a_pool("default"), [BegunNodes(NOON - 600, "Drifted", "00000001")], (3600, 60), NOON - 600)
    begun = with_begun(begun, [BegunNodes(NOON, "Drifted", "00000002")], (3600, 60), NOON)
    world = with_rules(Snapshot(now=NOON, pools={"default": begun, "other": a_pool("other")}), policy)
    written = Written()
    look = await TimeRuleUpkeep(
        written, lambda: NOON, catalogues=FakeCatalogues(), notices=FakeNotices(World()), questions=unasked()
    ).look(world)
    for write in look.due:
        await write()

    [taken] = written.statuses["p"].rates  # nothing is said of the second one, of which nothing is taken
    assert (taken.pool, taken.rate, taken.begun, taken.allowed) == ("default", 0, 2, 2)
    until, again = taken.until or 0.0, look.again or 0.0
    assert NOON + 3000 < again <= until < NOON + 3600
    later = await TimeRuleUpkeep(
        written, lambda: until, catalogues=FakeCatalogues(), notices=FakeNotices(World()), questions=unasked()
    ).look(world)
    for write in later.due:
        await write()
    assert [(each.begun, each.until) for each in written.statuses["p"].rates] == [(1, None)]


async def test_a_policy_that_is_not_understood_is_stalled_and_says_why() -> None:
    written, _ = await looked(Policy(name="p", fault="spec.timeZone: 'X' is no time zone"))

    conditions = {c.type: c for c in written.statuses["p"].conditions}
    assert (conditions["Ready"].status, conditions["Stalled"].status) == ("False", "True")
    assert "spec.timeZone: 'X' is no time zone" in conditions["Ready"].message
    assert not any(opening.open for opening in written.statuses["p"].openings)


async def test_a_freeze_says_whether_it_holds_and_is_looked_at_when_that_changes() -> None:
    freeze = Freeze(name="f", begins=NOON + 60, until=NOON + 120, what=frozenset({"disruption"}))
    states = []
    for now in (NOON, NOON + 60, NOON + 120):
        written, again = await looked(freeze, now=now)
        [active] = [c for c in written.conditions["f"] if c.type == "Active"]
        states.append((active.status, active.reason, again))
        freeze = replace(freeze, conditions=written.conditions["f"])

    assert states == [("False", "NotBegun", NOON + 60), ("True", "Begun", NOON + 120), ("False", "Ended", None)]
    assert (await looked(freeze, now=NOON + 180))[0].conditions == {}


def live(rules: TimeRules | None) -> LivePauses:
    return replace(pauses(a_joined_world()), rules=Written(rules))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (TimeRules(freezes={"f": Freeze(name="f", what=frozenset({"disruption"}))}), "by Freeze f"),
        (TimeRules(policies={"p": Policy(name="p", deny=(Window(),))}), "by DisruptionPolicy p: in deny[0]"),
    ],
)
async def test_a_node_is_not_marked_where_a_freeze_or_a_closed_window_has_come_since(
    rules: TimeRules, words: str
) -> None:
    world = a_joined_world()

    outcome = await marked(world, replace(pauses(world), rules=Written(rules)))

    [(_, why)] = outcome.refused
    assert words in why and outcome.marked == ()
    assert not world.nodes["node-1"].taints


async def test_a_node_is_not_marked_where_it_cannot_be_told_whether_there_is_a_freeze() -> None:
    world = a_joined_world()

    with pytest.raises(Forbidden):
        await marked(world, replace(pauses(world), rules=Written()))

    assert not world.nodes["node-1"].taints


UNWELL = Policy(name="p", health=HealthRule(max_not_ready="0", stable_for=600.0))


def a_sick_fleet() -> Snapshot:
    sick = a_pair("sick", pool="pool", node={"conditions": (Condition(type="Ready", status="Unknown"),)})
    return Snapshot(now=NOON, pools={"pool": a_pool("pool")}, claims={"sick": sick.claim}, nodes={"sick": sick.node})


def a_broken_watch() -> Snapshot:
    raise Unreachable("Node", "its watch is broken")


@pytest.mark.parametrize(
    ("fleet", "reason", "words"),
    [
        (a_sick_fleet, "Empty", "1 of 1 nodes are not ready, at most 0 may be"),
        (a_broken_watch, "Empty", "the nodes cannot be judged: Node: its watch is broken"),
        (a_broken_watch, "Requested", ""),
        (Snapshot, "Empty", ""),
    ],
)
async def test_at_the_mark_the_nodes_are_looked_at_as_the_cache_has_them(
    fleet: Callable[..., Snapshot], reason: str, words: str
) -> None:
    world, rules = a_joined_world(), TimeRules(policies={"p": UNWELL})
    if reason == "Requested":
        world.put(replace(world.claims["pool-1"], annotations={names.REPLACE: "worn out"}))
    seen = (lambda: fleet(now=NOON)) if fleet is Snapshot else fleet
    outcome = await marked(world, replace(pauses(world), rules=Written(rules), fleet=seen), reason)

    assert [words in why for _, why in outcome.refused] == ([True] if words else [])
    assert bool(world.nodes["node-1"].taints) is not bool(words)


async def test_a_broken_watch_of_nodes_holds_no_node_from_its_hard_expiry() -> None:
    ill = replace(live(TimeRules(policies={"p": UNWELL})), fleet=a_broken_watch)

    assert await ill.hold("default", Cause.EXPIRED_HARD) is None
    held = await ill.hold("default", Cause.EXPIRED)
    assert held is not None and (held.rule, held.until) == (HeldBy.HEALTH, None)


async def test_launches_go_on_where_it_cannot_be_told_whether_there_is_a_freeze() -> None:
    assert await live(None).of_all() == ()
    freeze = Freeze(name="f", what=frozenset({"launches"}))
    assert [pause.freeze for pause in await live(TimeRules(freezes={"f": freeze})).of_all()] == ["f"]


STEPS = (RolloutStep(name="canary", to="1", soak=600), RolloutStep(name="rest", to="100%"))


async def test_a_step_of_a_roll_out_is_permitted_by_what_upkeep_writes() -> None:
    rollout = Rollout(name="r", generation=2, created=NOON - 60, pool="default", steps=STEPS)
    drifted = a_pair("n1", pool="default", also=("Drifted",))
    world = replace(a_ruled_cluster(rollout), claims={drifted.claim.name: drifted.claim})
    written = Written()
    look = await TimeRuleUpkeep(
        written, lambda: NOON, catalogues=FakeCatalogues(), notices=FakeNotices(World()), questions=unasked()
    ).look(world)
    for write in look.due:
        await write()
    status = written.rollouts["r"]

    assert (status.step, status.state, status.begun) == ("canary", RolloutState.REPLACING, NOON)
    assert {condition.generation for condition in status.conditions} == {2}
    assert (status.total, status.at_target, status.leaving, look.again) == (1, 0, 0, NOON + 60)
    assert {c.type: (c.status, c.reason) for c in status.conditions} == {
        "Ready": ("False", "Replacing"),
        "Reconciling": ("True", "Replacing"),
        "Stalled": ("False", "Advancing"),
        "Healthy": ("Unknown", "GatesUnknown"),
        "StablePinned": ("False", "NotPossible"),
    }
    for due in (1, 0):  # its gate is asked from now on
        world = with_rules(world, replace(rollout, status=written.rollouts["r"]))
        again = await TimeRuleUpkeep(
            written, lambda: NOON + 1, catalogues=FakeCatalogues(), notices=FakeNotices(World()), questions=unasked()
        ).look(world)
        assert len(again.due) == due
        for write in again.due:
            await write()
    assert {c.type: c.reason for c in written.rollouts["r"].conditions}["Healthy"] == "GatesPass"


@pytest.mark.parametrize(
    ("rollout", "stalled", "ready"),
    [
        (Rollout(name="r", pool="gone", steps=STEPS), ("True", "NodePoolNotFound"), "False"),
        (Rollout(name="r", pool="default", steps=STEPS, intent=Intent.ABORT), ("True", "Aborted"), "False"),
        (Rollout(name="r", pool="default", steps=STEPS, intent=Intent.PAUSE), ("False", "Advancing"), "False"),
        (Rollout(name="r", pool="default", fault="spec.steps: none"), ("True", "NotUnderstood"), "False"),
        (
            Rollout(
                name="r", pool="default", steps=STEPS, status=RolloutStatus(gate=NodesGate(result=GateResult.FAILING))
            ),
            ("True", "GateFails"),
            "False",
        ),
        (
            Rollout(name="r", pool="default", steps=STEPS, status=RolloutStatus(state=RolloutState.COMPLETE)),
            ("False", "Advancing"),
            "True",
        ),
    ],
)
async def test_a_roll_out_says_what_keeps_it(rollout: Rollout, stalled: tuple[str, str], ready: str) -> None:
    written, _ = await looked(rollout)
    said = {c.type: (c.status, c.reason) for c in written.rollouts["r"].conditions}

    assert (said["Stalled"], said["Ready"][0]) == (stalled, ready)


class MadeOf:
    """Answers what a NodeClass makes of a launch."""

    def __init__(self, makes: str) -> None:
        self.makes = makes

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=True, ready="True", makes=self.makes)


def an_image(name: str, image: str, **also: Any) -> NodeClaim:
    drifted = condition(names.DRIFTED, NOON - 60, reason="AMIDrift")
    return replace(a_pair(name, pool="default", also=(drifted,)).claim, image_id=image, created=NOON - 3600, **also)


class Refusing:
    """A NodeRollout of one cluster, look after look."""

    def __init__(self, **spec: Any) -> None:
        self.rollout = Rollout(name="r", uid="u", created=NOON - 60, pool="default", steps=STEPS, **spec)
        self.claims = {claim.name: claim for claim in (an_image("n1", "image-1"), an_image("n2", "image-1"))}
        self.written, self.notices, self.now = Written(), FakeNotices(World()), NOON
        self.made = MadeOf("x/image-2")
        self.upkeep = TimeRuleUpkeep(self.written, lambda: self.now, self.made, self.notices, questions=unasked())  # type: ignore[arg-type]

    async def look(self) -> RolloutStatus:
        world = replace(a_ruled_cluster(self.rollout, now=self.now), claims=self.claims)
        for write in (await self.upkeep.look(world)).due:
            await write()
        self.rollout = replace(self.rollout, status=self.written.rollouts["r"])
        return self.rollout.status

    def said(self, kind: str) -> tuple[str, str, str]:
        found = next(each for each in self.rollout.status.conditions if each.type == kind)
        return found.status, found.reason, found.message


async def test_a_roll_out_remembers_the_images_of_before_and_says_whether_launches_take_them() -> None:
    kept, plain = Refusing(launches_stable=True), Refusing()
    for each in (kept, plain):
        status = await each.look()
        assert (status.makes, status.stable.since) == ("x/image-2", NOON)
        assert status.stable.images == (StableImage(id="image-1", types=("m8",)),)
    assert kept.said("StablePinned") == ("True", "Pinned", "launches take image-1")
    assert plain.said("StablePinned")[:2] == ("False", "NotAskedFor")

    kept.now = NOON + kept.rollout.longest_stable + 1
    await kept.look()
    assert kept.said("StablePinned")[:2] == ("False", "NotPossible")

    other = Refusing(launches_stable=True)
    other.claims = {name: replace(each, annotations=OTHER_TEMPLATE) for name, each in other.claims.items()}
    for claim in list(other.claims.values()):
        drifted = condition(names.DRIFTED, NOON - 60, reason="NodePoolDrifted")
        other.claims[claim.name] = replace(claim, conditions=(drifted,))
    await other.look()
    assert other.said("StablePinned") == (
        "False",
        "NotPossible",
        "launches take the target: the nodes of before differ from the target in more than their image",
    )


OTHER_TEMPLATE = {names.NODE_POOL_HASH: "another", names.NODE_POOL_HASH_VERSION: "v3"}


async def test_a_target_that_is_refused_is_said_on_its_node_class_once_and_held_until_there_is_another() -> None:
    play = Refusing()
    await play.look()
    play.rollout = replace(play.rollout, intent=Intent.ROLL_BACK, generation=1)
    new = replace(a_pair("new", pool="default").claim, created=NOON + 1)
    play.claims[new.name] = new

    assert (await play.look()).state == RolloutState.ROLLING_BACK
    assert play.said("Reconciling")[:2] == ("True", "RollingBack") and play.said("Stalled")[0] == "False"
    del play.claims[new.name]
    assert (await play.look()).state == RolloutState.FAILED
    await play.look()
    assert play.said("Stalled")[:2] == ("True", "TargetRefused") and play.said("Reconciling")[0] == "False"
    refused = [each for each in play.notices.world.notices if each.reason == "TargetRefused"]
    assert [(each.kind, each.name, each.type) for each in refused] == [("TestNodeClass", "default", "Warning")]
    assert refused[0].message == "NodeRollout r keeps NodePool default from it: a person asked for it"

    play.rollout = replace(play.rollout, intent=Intent.RUN)
    assert (await play.look()).state == RolloutState.FAILED  # the object is as it failed
    play.made.makes = "x/image-3"
    assert (await play.look()).state == RolloutState.REPLACING
    assert play.said("Stalled")[0] == "False"


def a_change(*rules: Policy | Freeze | Rollout) -> Snapshot:
    changed = Condition(type="Drifted", status="True", reason="NodePoolDrifted", changed=NOON)
    drifted = a_pair("n1", pool="default", also=(changed,))
    return replace(a_ruled_cluster(*rules), claims={drifted.claim.name: drifted.claim})


async def test_a_policy_has_a_roll_out_made_and_those_that_were_kept_for_a_month_taken_away() -> None:
    policy = Policy(name="p", rollout=RolloutPlan(steps=STEPS))
    old = RolloutStatus(state=RolloutState.COMPLETE, since=NOON - 31 * 86_400)
    written = Written()
    look = await RolloutUpkeep(written, FakeNotices(World())).look(
        a_change(policy, Rollout(name="r", pool="default", policy="p", status=old))
    )
    for write in look.due:
        await write()

    [new] = written.made
    assert (new.pool, new.policy, new.plan.steps, written.deleted) == ("default", "p", STEPS, ["r"])
    again = await RolloutUpkeep(written, FakeNotices(World())).look(
        a_change(policy, Rollout(name=new.name, pool="default", policy="p"))
    )
    assert not again.due


async def test_what_became_of_an_approval_is_published_once_and_a_worker_that_begins_is_silent() -> None:
    approval = Approval(step="canary", digest="1", by="alice", at=NOON)
    waiting = Rollout(name="r", uid="u1", pool="default", steps=STEPS)

    def with_answer(refused: str) -> Snapshot:
        status = RolloutStatus(answered=Answered(approval=replace(approval, at=NOON + len(refused)), refused=refused))
        return a_ruled_cluster(replace(waiting, status=status))

    world = World()
    upkeep = RolloutUpkeep(Written(), FakeNotices(world))
    for snapshot in (with_answer("late"), with_answer("late"), with_answer("the gates say no"), with_answer("")):
        for write in (await upkeep.look(snapshot)).due:
            await write()

    refused, accepted = world.notices
    assert (refused.kind, refused.name, refused.uid, refused.type) == ("NodeRollout", "r", "u1", "Warning")
    assert refused.message == "The approval by alice lets nothing begin: the gates say no"
    assert accepted.message == "What comes after step canary begins, by alice"
    assert [refused.reason, accepted.reason] == ["ApprovalRefused", "ApprovalAccepted"]


async def test_two_policies_that_both_have_a_roll_out_for_a_pool_are_stalled_and_say_so() -> None:
    plan = RolloutPlan(steps=STEPS)
    written, _ = await looked(Policy(name="p", rollout=plan), Policy(name="q", rollout=plan), Policy(name="r"))

    for name in ("p", "q"):
        said = {c.type: (c.status, c.reason, c.message) for c in written.statuses[name].conditions}
        assert (said["Ready"][:2], said["Stalled"][:2]) == (("False", "Conflict"), ("True", "Conflict"))
        assert said["Stalled"][2].startswith("NodePool default: DisruptionPolicies p and q each have a roll-out for it")
    assert {c.type: c.status for c in written.statuses["r"].conditions} == {"Ready": "True"}


async def test_at_the_mark_a_roll_out_is_asked_for_as_the_api_server_has_it() -> None:
    begun = RolloutStatus(step="canary", state=RolloutState.REPLACING)
    running = Rollout(name="r", pool="default", steps=STEPS, status=begun)
    for rollout, holds in ((running, False), (replace(running, intent=Intent.PAUSE), True)):
        live = replace(pauses(a_joined_world()), rules=Written(TimeRules(rollouts={"r": rollout})))
        assert (await live.hold("default", Cause.DRIFTED) is not None) is holds


class Slow(FakeClaims):
    """An API server of which each write takes a while; when each owner was written."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.marks: list[float] = []

    async def patch(self, claim: NodeClaim, change: MetadataChange) -> NodeClaim | None:
        self.world.clock += 0.1
        if change.annotations.get(names.OWNER):
            self.marks.append(self.world.clock)
        return await super().patch(claim, change)


class Coming(Written):
    """A Freeze that somebody writes at a moment."""

    def __init__(self, world: World, at: float) -> None:
        super().__init__(TimeRules())
        self.world, self.at = world, at

    async def read(self, _: str) -> TimeRules:
        freeze = Freeze(name="peak", begins=self.at, until=self.at + 3600.0, what=frozenset({"disruption"}))
        return TimeRules(freezes={"peak": freeze} if self.world.clock >= self.at else {})


@pytest.mark.parametrize("earlier", [1.0, 0.0, -0.5, -3.0, -8.0])
async def test_of_a_hundred_nodes_none_is_marked_once_a_freeze_has_stood_for_a_second(earlier: float) -> None:
    """Also where it comes while the step marks, which takes ten seconds here."""
    world, targets = World(), []
    begin = world.clock
    for number in range(100):
        claim = a_joined_claim(f"pool-{number}", provider_id=f"i-{number}", node_name=f"node-{number}")
        node = a_joined_node(f"node-{number}", provider_id=f"i-{number}")
        world.put(claim, node)
        targets.append(replace(target_of(claim, node), pool="pool"))
    claims, frozen = Slow(world), begin - earlier
    pool = a_pool("pool", disruption=DisruptionPolicy(budgets=ALL))
    live = replace(pauses(world), pools=OnePool(pool), rules=Coming(world, frozen))
    step = MarkAndUnmarkNodes(mark_ports(world, claims=claims, pauses=live), world.now)
    seen = Seen(taken_at=begin - 5.0, versions=()).ready(begin)
    request = MarkRequest(owner="c/disrupt/1", command=replace(COMMAND, targets=tuple(targets)), seen=seen)

    outcome: MarkOutcome = await ActivityEnvironment().run(step.mark_nodes, request)

    assert len(outcome.marked) + len(outcome.refused) == 100
    assert all("by Freeze peak" in why for _, why in outcome.refused)
    assert [at for at in claims.marks if at > frozen + 1.5] == []
    assert len(outcome.marked) == len(claims.marks) and bool(claims.marks) == (earlier < 0)
