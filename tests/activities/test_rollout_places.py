"""A roll-out that moves between a decision and its steps: what was permitted for one target never takes a node to
another."""

from dataclasses import fields, replace
from typing import Any, Final

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.launch.launch_instance import LaunchInstance
from dovetail.activities.provisioning.create_node_claims import CreateNodeClaims
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.writes.known_claims import KnownClaims
from dovetail.messages.outcomes import CreateOutcome, MarkOutcome
from dovetail.messages.plans import Seen
from dovetail.messages.requests import CreateRequest, MarkRequest
from dovetail.messages.subjects import ClaimRef
from dovetail.model import names, pools
from dovetail.model.nodes import NodeClassRef
from dovetail.model.own.claim_memory import BACK, Pin, memory_of, with_memory
from dovetail.model.own.policies import Policy, TimeRules
from dovetail.model.own.rollouts import Intent, Rollout, RolloutPlan, RolloutState, RolloutStatus, RolloutStep
from dovetail.model.own.stable_images import StableImage, StableImages
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import NodeClassState
from dovetail.ports.failures import Failure
from dovetail.workflows.converter import DATA_CONVERTER
from tests.activities.test_creating_claims import NODE, POOL
from tests.activities.test_gated_orders import OnePool
from tests.activities.test_pauses import (
    COMMAND,
    GivenRules,
    NoRules,
    a_joined_world,
    marking,
    pauses,
)
from worlds.disruption import a_claim
from worlds.fakes import FakeClaims, FakeCloud, FakeLookups, FakeNotices, World, create_ties, live_pauses

STEPS: Final = (RolloutStep(name="canary", to="1"), RolloutStep(name="rest", to="100%"))
IMAGES: Final = StableImages(since=1.0, images=(StableImage(id="ami-0", types=("m5.large",)),), why_not="")
STATUS: Final = RolloutStatus(step="rest", state=RolloutState.REPLACING, begun=10.0, makes="ami-1", target=POOL.hash)
DECIDED: Final = Rollout(name="r", uid="u", pool="pool", steps=STEPS, status=STATUS)
POLICY: Final = Policy(name="p", rollout=RolloutPlan(steps=STEPS))


def seen(*rollouts: Rollout, now: float = 0.0) -> Seen:
    return Seen.of(Snapshot(now=now, rollouts={each.name: each for each in rollouts}))


def live(world: World, *rollouts: Rollout, policy: Policy | None = None) -> LivePauses:
    policies = {policy.name: policy} if policy is not None else {}
    rules = TimeRules(policies=policies, rollouts={each.name: each for each in rollouts})
    return replace(pauses(world), rules=GivenRules(rules))


def at(**changes: Any) -> Rollout:
    return replace(DECIDED, status=replace(STATUS, **changes))


@pytest.mark.parametrize(
    ("rollouts", "policy", "why"),
    [
        ((DECIDED,), None, ""),
        ((at(total=40, at_target=7, leaving=3, state=RolloutState.SOAKING),), None, ""),  # the same step
        ((at(step="canary", begun=90.0),), None, "NodeRollout r: it has moved since this was decided"),
        ((at(step="canary"),), None, "NodeRollout r: it has moved"),  # nodes were lost
        ((at(makes="ami-2"),), None, "NodeRollout r: it has moved"),
        ((at(target="other"),), None, "NodeRollout r: it has moved"),  # the NodePool has changed
        ((replace(DECIDED, uid="another"),), None, "NodeRollout r: it has moved"),
        ((at(state=RolloutState.ROLLING_BACK, stable=IMAGES),), None, "NodeRollout r: it has moved"),
        ((replace(DECIDED, steps=(STEPS[0], replace(STEPS[1], to="50%"))),), None, "NodeRollout r: it has moved"),
        ((replace(DECIDED, intent=Intent.PAUSE),), None, "NodeRollout r: its intent is Pause"),
        ((), None, ""),  # a person has deleted it: budgets go on alone
        ((), POLICY, "the NodeRollout by which it was decided is gone, and a policy makes another"),
        ((at(state=RolloutState.COMPLETE),), None, ""),
    ],
)
async def test_a_mark_goes_by_the_step_that_was_decided_by(
    rollouts: tuple[Rollout, ...], policy: Policy | None, why: str
) -> None:
    world = a_joined_world()
    decided = seen(DECIDED, now=world.now()).ready(world.now())
    request = MarkRequest(owner="c/disrupt/1", command=replace(COMMAND, reason="Drifted"), seen=decided)
    step = marking(world, live(world, *rollouts, policy=policy))

    outcome: MarkOutcome = await ActivityEnvironment().run(step.mark_nodes, request)

    assert outcome.marked == (() if why else ("pool-1",))
    assert all(why in refused for _, refused in outcome.refused)
    assert why or world.claims["pool-1"].annotations[names.OWNER] == "c/disrupt/1"


async def test_a_roll_out_that_was_not_there_holds_what_was_decided_without_it_and_nothing_but_drift() -> None:
    for reason, marked in (("Drifted", ()), ("Empty", ("pool-1",))):
        world = a_joined_world()
        request = MarkRequest(
            owner="c/disrupt/1",
            command=replace(COMMAND, reason=reason),
            seen=seen(now=world.now()).ready(world.now()),
        )
        step = marking(world, live(world, DECIDED))
        outcome: MarkOutcome = await ActivityEnvironment().run(step.mark_nodes, request)
        assert outcome.marked == marked, reason


async def created(rules: LivePauses, world: World, decided: Seen | None) -> CreateOutcome:
    step = CreateNodeClaims(
        FakeClaims(world), OnePool(POOL), FakeNotices(world), world.now, create_ties(world, pauses=rules)
    )
    request = CreateRequest(plan_id="p", proposed=(NODE,), type_lists=((),), reason="drifted")
    if decided is not None:
        request = replace(request, places=decided.places)
    outcome: CreateOutcome = await ActivityEnvironment().run(step.create_node_claims, request)
    return outcome


@pytest.mark.parametrize(
    ("rollouts", "policy", "why"),
    [
        ((DECIDED,), None, ""),
        ((at(step="canary", begun=90.0),), None, ""),  # it was permitted, and counts
        ((at(makes="ami-2"),), None, "NodeRollout r has another target since"),
        ((at(target="other"),), None, "NodeRollout r has another target since"),
        ((replace(DECIDED, uid="again", status=RolloutStatus()),), None, "NodeRollout r has another target since"),
        ((at(state=RolloutState.FAILED),), None, "NodeRollout r refuses the target"),
        ((at(state=RolloutState.FAILED, stable=IMAGES),), None, ""),  # with an image of before
        ((), None, ""),
        ((), POLICY, "the NodeRollout by which it was decided is gone, and a policy makes another"),
    ],
)
async def test_a_replacement_is_made_for_the_target_that_was_decided_for(
    rollouts: tuple[Rollout, ...], policy: Policy | None, why: str
) -> None:
    world = World()

    outcome = await created(live(world, *rollouts, policy=policy), world, seen(DECIDED))

    assert [refused for _, refused in outcome.refused] == ([why] if why else [])
    assert len(outcome.claims) == (0 if why else 1)


async def test_what_was_decided_on_the_way_back_is_not_made_once_it_goes_forward_again() -> None:
    world, back = World(), at(state=RolloutState.ROLLING_BACK, stable=IMAGES)

    assert not (await created(live(world, DECIDED), world, seen(back))).claims
    assert (await created(live(world, DECIDED), world, None)).claims  # by a workflow of a version before: as it was


async def test_a_replacement_says_which_target_it_is_for_and_which_image_where_the_target_is_refused() -> None:
    for state, image, target in (
        (RolloutState.REPLACING, "", "ami-1"),
        (RolloutState.FAILED, BACK, ""),
        (RolloutState.ROLLING_BACK, BACK, ""),
    ):
        world = World()
        rollout = at(state=state, stable=IMAGES)
        [ref] = (await created(live(world, rollout), world, seen(rollout))).claims
        made = memory_of(world.claims[ref.name].annotations).roll_out
        assert (made.how, made.target) == (image, target), state


async def test_what_a_roll_out_takes_back_is_marked_and_replaced_by_an_image_of_before_whatever_another_one_says() -> (
    None
):
    """Else the node that leaves the refused target would be replaced by one at it, again and again."""
    back = replace(at(state=RolloutState.ROLLING_BACK, stable=IMAGES), name="second")
    world, other = a_joined_world(), replace(at(step="canary"), name="first", uid="first")
    decided = seen(back, other, now=world.now()).ready(world.now())
    request = MarkRequest(owner="c/disrupt/1", command=replace(COMMAND, reason="Drifted"), seen=decided)
    step = marking(world, live(world, back, replace(other, status=STATUS)))
    outcome: MarkOutcome = await ActivityEnvironment().run(step.mark_nodes, request)
    assert outcome.marked == ("pool-1",)

    made_in = World()
    [ref] = (await created(live(made_in, back, other), made_in, seen(back, other))).claims
    made = memory_of(made_in.claims[ref.name].annotations).roll_out
    assert (made.how, made.target) == (BACK, "")


@pytest.fixture
def hashed_anew(monkeypatch: pytest.MonkeyPatch) -> NodePool:
    """The NodePool, of which a later release works out another hash."""
    monkeypatch.setattr(pools, "NODE_POOL_HASH_ALGORITHM", "v4")
    return replace(POOL, hash="4444")


async def test_a_new_version_of_the_hashes_is_no_other_target(hashed_anew: NodePool) -> None:
    """What was decided before the upgrade goes on after it, and the other way round."""
    before = at(target="3333", makes="3a3a")
    after = at(target="v4:4444", makes="v7:7a7a")

    for decided, found in ((before, after), (after, before)):
        assert await marked(seen(decided), found, pool=hashed_anew)
        assert (await created(live(World(), found), World(), seen(decided))).claims
    for other in (at(target="v4:4445", makes="v7:7a7a"), at(target="v4:4444", makes="v7:7a7b")):
        assert not await marked(seen(after), other, pool=hashed_anew)
        assert not (await created(live(World(), other), World(), seen(after))).claims
    assert not await marked(seen(before), at(target="v4:4444", makes="v7:7a7a", step="canary"), pool=hashed_anew)


async def test_a_replacement_waits_where_roll_outs_cannot_be_read() -> None:
    world = World()
    rules = live_pauses(world, pools=OnePool(POOL), rules=NoRules())

    with pytest.raises(Failure):
        await created(rules, world, seen(DECIDED))

    assert not world.claims


async def marked(decided: Seen, *rollouts: Rollout, pool: NodePool = POOL) -> bool:
    world = a_joined_world()
    request = MarkRequest(
        owner="c/disrupt/1",
        command=replace(COMMAND, reason="Drifted"),
        seen=replace(decided, taken_at=world.now()).ready(world.now()),
    )
    rules = replace(live(world, *rollouts), pools=OnePool(pool))
    outcome: MarkOutcome = await ActivityEnvironment().run(marking(world, rules).mark_nodes, request)
    return bool(outcome.marked)


async def test_two_targets_with_one_checksum_are_two() -> None:
    """What NodeClasses make is a digest of 16 digits; these two have the same CRC-32."""
    one, other = at(makes="b97186618aa1434e"), at(makes="2f6843fd71907689")

    assert not await marked(seen(one), other)
    assert not (await created(live(World(), other), World(), seen(one))).claims


async def test_a_moment_that_is_written_as_a_whole_number_is_the_same_moment() -> None:
    assert await marked(seen(at(begun=10)), DECIDED)


def crossed(value: Any, as_type: Any) -> Any:
    """What a worker that knows this type reads of it."""
    values = DATA_CONVERTER.payload_converter
    return values.from_payloads(values.to_payloads([value]), [as_type])[0]


async def test_a_place_of_a_newer_worker_is_read_without_what_this_one_does_not_know() -> None:
    assert crossed(seen(DECIDED), Seen) == seen(DECIDED)
    [place] = seen(DECIDED).places
    newer = {"taken_at": 0.0, "places": [{**{f.name: getattr(place, f.name) for f in fields(place)}, "lane": "left"}]}

    assert crossed(newer, Seen).places == (place,)


class Makes:
    """A NodeClass that makes this."""

    def __init__(self, makes: str) -> None:
        self.makes = makes

    async def node_class(self, _: NodeClassRef) -> NodeClassState:
        return NodeClassState(found=True, makes=self.makes)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody asks for {name} here")


@pytest.mark.parametrize(
    ("target", "makes", "kind"),
    [
        ("ami-1", "ami-1", "launched"),
        ("ami-1", "ami-2", "class_not_ready"),
        ("3a3a", "v7:7a7a", "launched"),  # hashed by a new version
        ("v7:7a7a", "v7:7a7b", "class_not_ready"),
        ("ami-1", "", "launched"),  # the adapter says itself that the class is not ready
        ("", "ami-2", "launched"),
    ],
)
async def test_another_target_than_that_of_the_step_is_not_launched(target: str, makes: str, kind: str) -> None:
    """The claim goes, and its disruption with it: the roll-out begins anew."""
    world = World()
    world.put(a_claim(annotations=with_memory({}, roll_out=Pin(target=target)) if target else {}))
    known = KnownClaims(FakeLookups(world), FakeClaims(world))
    step = LaunchInstance(known, FakeCloud(world), FakeNotices(world), world.now, Makes(makes))

    outcome = await step.launch_instance(ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool"))

    assert outcome.kind == kind
    assert ("has changed since the roll-out took this node" in outcome.message) == (kind != "launched")
    assert len(world.instances) == (kind == "launched")
