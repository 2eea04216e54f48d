"""A NodeRollout that fails goes back: the nodes at its target leave, newest first, and launches take the images of
before."""

from dataclasses import replace
from typing import Final

import pytest

from dovetail.activities.upkeep.time_rules import rollout_status
from dovetail.answers.status.rollouts import rollout_needs
from dovetail.cli.rollout.story import story_of
from dovetail.disruption.choose import choose
from dovetail.disruption.explain import explain_node
from dovetail.disruption.rounds import never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.disruption.upkeep.roll_out import refused_of
from dovetail.lifecycle.conditions import unknown
from dovetail.messages.plans import DisruptionPlan
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.own.claim_memory import BACK, STABLE, Pin, images_of, memory_of, with_memory
from dovetail.model.own.health import HealthRule
from dovetail.model.own.policies import Policy
from dovetail.model.own.rollouts import (
    Intent,
    Order,
    Passage,
    PoolNodes,
    Rollout,
    RolloutState,
    RolloutStatus,
    pin_of,
)
from dovetail.model.own.stable_images import (
    NO_IMAGE,
    OTHER_CHANGE,
    TARGET_AGAIN,
    TOO_OLD,
    StableImage,
    StableImages,
)
from dovetail.model.pools import Budget
from dovetail.model.snapshot import Snapshot
from dovetail.rules.beginnings import hold_of, said_in
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from dovetail.rules.rollout.moves import next_move
from dovetail.rules.rollout.nodes import nodes_of
from dovetail.rules.said import Cause
from tests.disruption.test_rollouts import FAILS, KNOWN, POOL, SEEN, a_rollout, a_status
from worlds.disruption import HOUR, NOW, a_pair, a_pod, a_world, condition
from worlds.kept_rollouts import kept
from worlds.made_claims import launched_by, made_by
from worlds.time_rules import with_rules

SETTINGS: Final = DisruptionSettings()
IMAGE_DRIFT: Final = condition(names.DRIFTED, reason="AMIDrift")
OPENED: Final = StableImages(since=NOW)


def going_back(intent: Intent = Intent.RUN) -> Rollout:
    found = a_rollout(a_status("rest", RolloutState.ROLLING_BACK, stable=KNOWN, gate=FAILS), intent)
    failure = next_move(
        replace(found, intent=Intent.ROLL_BACK, status=a_status(stable=KNOWN)), POOL, NODES, NOW
    ).failure
    return replace(found, status=replace(found.status, failure=failure))


NODES: Final = PoolNodes(old=9, at_target=1, refusable=1)


def half_rolled_out(old: int, new: int, *rules: Rollout, budget: str = "100%") -> Snapshot:
    pool = replace(POOL, disruption=replace(POOL.disruption, budgets=(Budget(nodes=budget),)))
    pairs = [a_pair(f"old{n}", also=(IMAGE_DRIFT,)) for n in range(old)]
    pairs += [a_pair(f"new{n}", claim={"created": NOW - 30 + n}) for n in range(new)]
    return with_rules(a_world(pairs, [a_pod(f"new{n}", cpu="6") for n in range(new)], [pool]), *rules)


def taken(world: Snapshot) -> list[str]:
    choice = choose(world, SETTINGS, never)
    return [t.node for c in choice.commands for t in c.targets] if isinstance(choice, DisruptionPlan) else []


def test_nodes_at_the_target_leave_newest_first_and_no_others() -> None:
    assert taken(half_rolled_out(4, 3, going_back())) == ["new2", "new1", "new0"]
    assert taken(half_rolled_out(8, 2, going_back(), budget="10%")) == ["new1"]
    assert taken(half_rolled_out(4, 0, going_back())) == []
    for held in (Intent.PAUSE, Intent.ABORT):
        assert taken(half_rolled_out(4, 3, going_back(held))) == []


@pytest.mark.parametrize(("budget", "waves"), [("100%", [10]), ("20%", [8, 2])])
def test_ten_of_forty_are_back_after_two_waves_at_most(budget: str, waves: list[int]) -> None:
    """Each wave is one decision; its nodes come with an image of before, and then it is over."""
    world, rollout, found = half_rolled_out(30, 10, going_back(), budget=budget), going_back(), list[int]()
    while leaving := taken(world):
        found.append(len(leaving))
        claims = {**world.claims}
        for node in leaving:
            back = with_memory({}, roll_out=Pin(how=BACK, images=(StableImage(id="image-1", types=("m5.large",)),)))
            claim = claims[f"claim-{node}"]
            claims[claim.name] = replace(claim, annotations=back, conditions=(*claim.conditions, IMAGE_DRIFT))
        world = with_rules(replace(world, claims=claims), rollout)

    assert found == waves
    over = next_move(rollout, world.pools[POOL.name], nodes_of(world, world.pools[POOL.name]), NOW)
    assert over.state == RolloutState.FAILED


@pytest.mark.parametrize("earlier", [RolloutState.COMPLETE, RolloutState.PAUSED])
def test_that_an_earlier_roll_out_came_from_the_image_keeps_no_node_that_has_it(earlier: RolloutState) -> None:
    """A change back to an image of before is refused like any other; "taken back" is said once no node has it."""
    images = (StableImage(id="image-2", types=("m8",)),)
    of_earlier = a_status("rest", earlier, stable=StableImages(since=NOW - HOUR, images=images, why_not=""))
    rollouts = (going_back(), replace(a_rollout(of_earlier), name="earlier", uid="earlier"))
    world = half_rolled_out(4, 3)
    on_second = {name: replace(each, image_id="image-2") for name, each in world.claims.items() if "new" in name}
    world = with_rules(replace(world, claims={**world.claims, **on_second}), *rollouts)

    nodes = nodes_of(world, POOL)
    assert nodes.refusable == 3
    assert next_move(going_back(), POOL, nodes, NOW).state == RolloutState.ROLLING_BACK
    assert taken(world) == ["new2", "new1", "new0"]


@pytest.mark.parametrize(
    "other",
    [
        a_rollout(a_status("canary", makes="x/image-2")),
        a_rollout(a_status("canary", RolloutState.JUDGING, gate=FAILS, makes="x/image-2")),
        replace(a_rollout(a_status("rest", makes="x/image-2")), order=Order.ZONE),
        a_rollout(a_status(state=RolloutState.FAILED)),
        a_rollout(RolloutStatus()),
    ],
)
def test_another_roll_out_of_the_pool_does_not_hold_the_way_back_unless_a_person_has_stopped_it(other: Rollout) -> None:
    """Its step and its gates are about nodes that come to the target, and there the nodes are that must leave."""
    other = replace(other, name="another", uid="another")
    assert taken(half_rolled_out(4, 3, going_back(), other)) == ["new2", "new1", "new0"]
    pin = pin_of((other, going_back()), "drifted")
    assert pin is not None and pin.how == BACK
    for stopped in (replace(other, intent=Intent.ABORT), replace(other, fault="spec.steps: none")):
        assert taken(half_rolled_out(4, 3, going_back(), stopped)) == []


OTHER_DRIFT: Final = condition(names.DRIFTED, reason="SecurityGroupDrift")
BEGAN: Final = (Passage(step="rest", began=NOW),)


@pytest.mark.parametrize(
    ("longest", "drift", "later", "why"),
    [
        (30 * 24 * HOUR, OTHER_DRIFT, HOUR, OTHER_CHANGE),
        (HOUR, IMAGE_DRIFT, 2 * HOUR, TOO_OLD),
    ],
)
def test_where_the_way_back_ends_before_the_nodes_are_back_it_is_said_that_they_stay(
    longest: float, drift: Condition, later: float, why: str
) -> None:
    """ "Taken back" is said once no node is at the target that was refused."""
    rollout = replace(going_back(), longest_stable=longest)
    rollout = replace(rollout, status=replace(rollout.status, history=BEGAN))

    def looked(also: Condition, new: int, after: float) -> Rollout:
        pairs = [a_pair(f"old{n}", also=(also,), claim={"created": NOW - HOUR, "image_id": "image-1"}) for n in "ab"]
        pairs += [a_pair(f"new{n}", claim={"image_id": "image-2"}) for n in range(new)]
        world = replace(with_rules(a_world(pairs, [], [POOL]), rollout), now=NOW + after)
        return replace(rollout, status=rollout_status(rollout, world, NOW + after, "x/image-2"))

    for after in (later, later + 1):
        rollout = looked(drift, 2, after)
    stays = f"its nodes stay, because {why}"
    assert rollout.words.startswith("Failed: ") and rollout.words.endswith(stays)
    assert list(story_of(rollout))[-1].endswith(f"rest: failed after {later / HOUR:g}h1s: {stays}")

    gone = looked(drift, 0, later + 2)  # a person has deleted them
    assert gone.status.state == RolloutState.FAILED and "stay" not in gone.words
    rollout = replace(rollout, longest_stable=30 * 24 * HOUR)
    for after in (later + 3, later + 4):
        rollout = looked(IMAGE_DRIFT, 2, after)
    assert rollout.status.state == RolloutState.ROLLING_BACK and "stay" not in rollout.words
    assert "taken back" in list(story_of(looked(IMAGE_DRIFT, 0, later + 5)))[-1]


def test_where_the_target_is_an_image_of_before_again_nothing_is_taken_back_and_no_launch_is_kept_to_it() -> None:
    """The NodeClass is put back half-way, and that is refused too: its nodes have the image to go back to."""
    status = a_status("rest", begun=NOW - 40, makes="x/image-1", stable=KNOWN, history=BEGAN)
    rollout = replace(a_rollout(status), launches_stable=True)
    pairs = [a_pair(f"old{n}", also=(IMAGE_DRIFT,), claim={"created": NOW - 50, "image_id": "image-2"}) for n in "ab"]
    pairs += [a_pair("new", claim={"created": NOW - 30, "image_id": "image-1"})]
    for intent in (Intent.RUN, Intent.ROLL_BACK, Intent.ROLL_BACK):
        rollout = replace(rollout, intent=intent)
        world = with_rules(a_world(pairs, [], [POOL]), rollout)
        rollout = replace(rollout, status=rollout_status(rollout, world, NOW, "x/image-1"))

    said = f"its nodes stay, because {TARGET_AGAIN}"
    assert rollout.words == f"Failed: a person asked for it; {said}"
    assert [each.result for each in rollout.status.history] == ["Failed"]
    assert rollout.pin("provisioned") is None

    world = with_rules(a_world(pairs, [], [POOL]), rollout)
    other = rollout_status(replace(rollout, intent=Intent.RUN), world, NOW, "x/image-3")
    elsewhere = replace(rollout, status=other, intent=Intent.RUN)
    world = with_rules(a_world([pairs[0], a_pair("b", claim={"created": NOW + 30})], [], [POOL]), elsewhere)
    assert rollout_status(elsewhere, world, NOW + 60, "x/image-3").stable.why_not == ""


def test_what_was_launched_with_an_older_image_stays_and_what_got_the_targets_for_want_of_one_goes() -> None:
    """Its way back is refused as long as none suits it, which is said; that it is taken back would be false."""
    world = half_rolled_out(1, 3, going_back())
    marks = {"claim-new0": STABLE, "claim-new1": "gone"}
    claims = {
        name: replace(claim, annotations=with_memory({}, roll_out=Pin(how=marks[name]))) if name in marks else claim
        for name, claim in world.claims.items()
    }
    world = replace(world, claims=claims)

    assert sorted(taken(world)) == ["new1", "new2"]
    nodes = nodes_of(world, POOL)
    assert (nodes.at_target, nodes.refusable) == (3, 2)
    said = explain_node(world, SETTINGS, "old0")
    assert "a NodeRollout goes back, which replaces the nodes at its target alone" in {m.message for m in said.methods}


def test_a_node_of_an_older_image_proves_nothing_and_is_no_other_target() -> None:
    late = {"created": NOW + 5, "annotations": with_memory({}, roll_out=Pin(how=STABLE))}
    judged, unjudged = a_pair("s1", also=(IMAGE_DRIFT,), claim=late), a_pair("s2", claim=late)
    found = nodes_of(a_world([judged, unjudged], [], [POOL]), POOL)

    assert not a_rollout(a_status()).has_changed(POOL, found)
    fresh = replace(a_rollout(a_status(since=NOW)), created=NOW - 60)
    assert next_move(fresh, POOL, replace(found, old=0), NOW) == fresh.status


def test_nodes_that_are_not_ready_do_not_hold_the_way_back_and_hold_everything_else() -> None:
    """They may be those of the target, and nothing else would ever make the others well."""
    world = half_rolled_out(4, 2, going_back())
    policy = Policy(name="well", health=HealthRule(max_not_ready="10%", stable_for=600.0))
    unwell = {f"new{number}": replace(a_pair(f"new{number}").node, conditions=()) for number in range(2)}
    sick = with_rules(replace(world, nodes={**world.nodes, **unwell}), going_back(), policy)

    assert taken(sick) == ["new1", "new0"]
    assert hold_of(said_in(sick, "a"), Cause.EMPTY) is not None
    onward = with_rules(replace(sick, rollouts={}), policy)
    assert taken(onward) == [] and hold_of(said_in(onward, "a"), Cause.DRIFTED) is not None


def test_failures_before_it_went_back_do_not_hold_the_way_back() -> None:
    failures = tuple(Happened(NOW - ago, f"{ago:08x}") for ago in (300, 200, 100))
    pool = with_breaker(POOL, Breaker(reason="Drifted", failures=failures, opened=NOW - 100))
    world = half_rolled_out(4, 2, going_back())

    assert taken(replace(world, pools={"a": pool})) == ["new1", "new0"]
    since = replace(going_back(), status=replace(going_back().status, since=NOW - 400))
    assert taken(replace(with_rules(world, since), pools={"a": pool})) == []


@pytest.mark.parametrize(
    ("rollout", "state"),
    [
        (a_rollout(a_status(gate=replace(FAILS, since=NOW - 180), stable=KNOWN)), RolloutState.JUDGING),
        (replace(a_rollout(a_status(gate=FAILS, stable=KNOWN)), rolls_back=True), RolloutState.JUDGING),
        (
            replace(a_rollout(a_status(gate=replace(FAILS, since=NOW - 179), stable=KNOWN)), rolls_back=True),
            RolloutState.JUDGING,
        ),
        (
            replace(a_rollout(a_status(gate=replace(FAILS, since=NOW - 180), stable=KNOWN)), rolls_back=True),
            RolloutState.ROLLING_BACK,
        ),
        (
            replace(a_rollout(a_status(gate=replace(FAILS, since=NOW - 180))), rolls_back=True),
            RolloutState.JUDGING,  # nothing is known to go back to
        ),
        (
            replace(
                a_rollout(a_status(gate=replace(FAILS, since=NOW - 180), stable=KNOWN), Intent.PROMOTE),
                rolls_back=True,
            ),
            RolloutState.REPLACING,  # whoever promotes has seen it
        ),
        (a_rollout(a_status(stable=KNOWN), Intent.ROLL_BACK), RolloutState.ROLLING_BACK),
        (a_rollout(a_status(), Intent.ROLL_BACK), RolloutState.FAILED),
        (a_rollout(RolloutStatus(), Intent.ROLL_BACK), RolloutState.WAITING),
        (a_rollout(a_status(state=RolloutState.COMPLETE), Intent.ROLL_BACK), RolloutState.COMPLETE),
        (a_rollout(a_status(stable=KNOWN), Intent.ROLL_BACK, "spec: none"), RolloutState.REPLACING),
    ],
)
def test_when_it_goes_back(rollout: Rollout, state: RolloutState) -> None:
    assert next_move(rollout, POOL, NODES, NOW).state == state


def test_three_replacements_in_a_row_that_failed_take_it_back() -> None:
    rollout = replace(a_rollout(a_status(begun=NOW - 150, stable=KNOWN)), rolls_back=True)

    def found(*moments: float) -> RolloutStatus:
        failures = tuple(Happened(moment, f"{number:08x}") for number, moment in enumerate(moments))
        pool = with_breaker(POOL, Breaker(reason="Drifted", failures=failures))
        return next_move(rollout, pool, SEEN["nothing"], NOW)

    assert found(NOW - 200, NOW - 120, NOW - 100).state == RolloutState.REPLACING  # one is of a target before
    back = found(NOW - 120, NOW - 110, NOW - 100)
    assert back.state == RolloutState.ROLLING_BACK
    assert back.failure is not None and back.failure.message == "3 replacements in a row were not ready in time"


@pytest.mark.parametrize("state", [RolloutState.ROLLING_BACK, RolloutState.FAILED])
def test_it_is_tried_again_once_a_person_has_changed_it_or_the_target_is_another(state: RolloutState) -> None:
    failed = replace(going_back(), status=replace(going_back().status, state=state, makes="x/image-2"))

    def moved(rollout: Rollout, nodes: PoolNodes = NODES) -> RolloutStatus:
        return next_move(rollout, POOL, nodes, NOW)

    assert moved(failed).state == RolloutState.ROLLING_BACK
    for intent in (Intent.RUN, Intent.PROMOTE):
        again = moved(replace(failed, generation=1, intent=intent))
        assert (again.step, again.state, again.begun) == ("canary", RolloutState.REPLACING, NOW)
        assert again.stable == KNOWN  # what nodes ran before is not what the refused ones run
    for intent in (Intent.PAUSE, Intent.ABORT):
        assert moved(replace(failed, generation=1, intent=intent)) == failed.status
    assert moved(replace(failed, generation=1, intent=Intent.ROLL_BACK)).state == RolloutState.ROLLING_BACK

    other = moved(failed, replace(NODES, refusable=0, makes="x/image-3"))
    assert (other.state, other.makes) == (RolloutState.REPLACING, "x/image-3")
    assert moved(failed, replace(NODES, refusable=0, makes="x/image-2")).state == RolloutState.FAILED
    assert moved(failed, replace(NODES, refusable=0)).state == RolloutState.FAILED  # nobody knows what it makes
    drifts = replace(NODES, refusable=0, newest_old=NOW)  # a node at the target that drifts for a reason of its own
    assert moved(failed, replace(drifts, makes="x/image-2")).state == RolloutState.FAILED
    assert moved(failed, drifts).state == RolloutState.FAILED  # also while nobody knows what it makes


def test_an_order_to_go_back_says_nothing_of_the_next_target() -> None:
    """Else the way back would go on with whatever the user puts right."""
    ordered = replace(going_back(Intent.ROLL_BACK), generation=0)
    ordered = replace(ordered, status=replace(ordered.status, makes="x/image-2"))
    begun = next_move(ordered, POOL, replace(NODES, makes="x/image-1"), NOW)
    assert (begun.step, begun.state) == ("canary", RolloutState.REPLACING)

    going_on = replace(ordered, status=begun)
    assert not going_on.is_held
    assert next_move(going_on, POOL, replace(NODES, makes="x/image-1"), NOW).state == RolloutState.REPLACING
    approved = replace(going_on, generation=1)  # something else of it was changed, as an approval does
    assert next_move(approved, POOL, replace(NODES, makes="x/image-1"), NOW).state == RolloutState.REPLACING

    run = next_move(replace(going_on, generation=2, intent=Intent.RUN), POOL, replace(NODES, makes="x/image-1"), NOW)
    anew = replace(going_on, generation=3, status=run)  # the order is given anew
    assert next_move(anew, POOL, replace(NODES, makes="x/image-1"), NOW).state == RolloutState.ROLLING_BACK


def test_a_node_that_has_an_image_of_before_is_never_taken_back() -> None:
    """The class may have that image again before the roll-out has looked."""
    world = half_rolled_out(0, 2, going_back())
    claims = {
        name: replace(each, image_id="image-1") if "new0" in name else each for name, each in world.claims.items()
    }

    assert taken(replace(world, claims=claims)) == ["new1"]


@pytest.mark.parametrize(
    ("rollout", "reason", "how"),
    [
        (a_rollout(a_status(stable=KNOWN)), "provisioned", ""),
        (replace(a_rollout(a_status(stable=KNOWN)), launches_stable=True), "provisioned", STABLE),
        (replace(a_rollout(a_status(stable=KNOWN), Intent.ABORT), launches_stable=True), "expired", STABLE),
        (replace(a_rollout(a_status(stable=KNOWN)), launches_stable=True), "drifted", ""),
        (replace(a_rollout(a_status()), launches_stable=True), "provisioned", ""),
        (replace(a_rollout(a_status(state=RolloutState.COMPLETE, stable=KNOWN)), launches_stable=True), "expired", ""),
        (replace(a_rollout(RolloutStatus(stable=KNOWN)), launches_stable=True), "provisioned", ""),
        (going_back(), "provisioned", STABLE),
        (going_back(), "drifted", BACK),
        (a_rollout(a_status(state=RolloutState.FAILED, stable=KNOWN)), "provisioned", STABLE),
        (a_rollout(a_status(state=RolloutState.FAILED, stable=replace(KNOWN, why_not=TOO_OLD))), "provisioned", ""),
    ],
)
def test_which_launches_take_the_images_of_before(rollout: Rollout, reason: str, how: str) -> None:
    pins = launched_by(rollout.pin(reason))

    assert memory_of(pins).roll_out.how == how
    assert images_of(pins) == (KNOWN.images if how else ())


def with_image(
    name: str, image: str, reason: str = "AMIDrift", created: float = NOW - 60, kind: str = "m8"
) -> NodeClaim:
    found = a_pair(name, kind, also=(condition(names.DRIFTED, reason=reason),)).claim
    return replace(found, image_id=image, created=created)


def test_the_images_of_before_are_those_of_nodes_that_differ_in_nothing_else() -> None:
    found = OPENED.seen(
        [with_image("n1", "a"), with_image("n2", "a", kind="m4"), with_image("n3", "b", created=NOW - 5)], NOW, 60
    )
    assert found.images == (StableImage(id="b", types=("m8",)), StableImage(id="a", types=("m4", "m8")))
    assert (found.why_not, found.since) == ("", NOW)
    assert images_of(with_memory({}, roll_out=Pin(how=STABLE, images=found.images))) == found.images

    assert found.seen([], NOW + 60, 60) == found  # the nodes are gone, the images are known
    assert found.seen([with_image("late", "c", created=NOW)], NOW, 60) == found  # of a target that came between
    assert found.seen([with_image("n1", "a")], NOW + 61, 60).why_not == TOO_OLD


@pytest.mark.parametrize(
    ("old", "why_not"),
    [
        ([], NO_IMAGE),
        ([with_image("n", "")], OTHER_CHANGE),
        ([with_image("n", "a", "NodePoolDrifted")], OTHER_CHANGE),
        ([with_image("n", "a", "NodeClassDrift")], OTHER_CHANGE),
        ([with_image("n", "a", "NodeClassDrift"), with_image("m", "a")], ""),
        ([replace(with_image("n", "a"), conditions=())], OTHER_CHANGE),  # its hash differs
    ],
)
def test_a_change_of_more_than_the_image_is_not_kept(old: list[NodeClaim], why_not: str) -> None:
    found = OPENED.seen(old, NOW, 60)

    assert found.why_not == why_not
    assert bool(found.images) is not bool(why_not)


def test_a_later_change_of_more_than_the_image_ends_what_is_kept() -> None:
    found = OPENED.seen([with_image("n", "a")], NOW, 60).seen([with_image("n", "a", "NodePoolDrifted")], NOW, 60)

    assert (found.why_not, [image.id for image in found.images]) == (OTHER_CHANGE, ["a"])


def test_a_mark_is_refused_by_the_intent_and_let_through_on_the_way_back() -> None:
    def live(rollout: Rollout) -> bool:
        said = replace(said_in(half_rolled_out(4, 1, rollout), "a"), nodes=None)
        return hold_of(said, Cause.DRIFTED) is None

    assert live(going_back()) and live(going_back(Intent.ROLL_BACK))
    assert not live(going_back(Intent.ABORT))
    assert not live(replace(going_back(), fault="spec: none"))


def test_the_pool_says_who_refuses_its_target() -> None:
    back = going_back()
    assert refused_of([back], POOL) == "NodeRollout r refuses the target: RollingBack: a person asked for it"
    assert refused_of([a_rollout(), replace(back, pool="b")], POOL) == ""
    assert back.status.gate == FAILS


def test_an_order_to_go_back_before_there_is_a_change_says_that_nothing_begins() -> None:
    """It would hold the change that comes as well, and say that it goes on."""
    rollout = replace(a_rollout(RolloutStatus(), Intent.ROLL_BACK), status=RolloutStatus())
    world = with_rules(half_rolled_out(4, 0), rollout)
    status = rollout_status(rollout, world, NOW)
    assert taken(world) == [] and status.state == RolloutState.WAITING

    known = kept(replace(rollout, status=status))
    [need] = rollout_needs(with_rules(world, known))
    assert need.what == (
        "NothingToTakeBack: no change has begun that could be taken back, and none begins until its intent is another"
    )
    assert need.command == "dovetail rollout resume r"
    run = rollout_status(replace(known, intent=Intent.RUN), world, NOW)
    assert run.state == RolloutState.REPLACING
    assert not any(each.type == "Stalled" and each.status == "True" for each in run.conditions)


GONE: Final = "no image of before the change can be launched: image-1=m8"
NOT_READY: Final = condition("NodeClassReady", status="False", reason="AMINotFound")


def a_way_back(*at: tuple[int, str], until: int) -> list[tuple[int, str, str]]:
    """The looks at which the condition Stalled of a way back of two nodes is another: minute, status, message. `at`:
    from which minute on a launch of it is refused, is not tried, has brought one node back, or its class is not
    ready."""
    rollout, found = kept(going_back()), list[tuple[int, str, str]]()
    marked = launched_by(rollout.pin("drifted"), **made_by("p"))
    there, what, back = dict(at), "", 0
    for minute in range(until + 1):
        now, what = NOW + 60 * minute, there.get(minute, what)
        back = minute if there.get(minute) == "one is back" else back
        pairs = [a_pair(f"new{n}", claim={"created": NOW - 30}) for n in range(2)]
        if back:
            arrived = now + 60 * (back - minute)
            up = condition(names.INITIALIZED_CONDITION, arrived), IMAGE_DRIFT
            made = {"annotations": marked, "image_id": "image-1", "created": arrived - 60, "conditions": up}
            pairs.append(a_pair("back", claim=made))
        pool = replace(POOL, conditions=(replace(NOT_READY, message="no image"),)) if what == "no class" else POOL
        world = replace(a_world(pairs, [], [pool]), now=now)
        if what == "refused":
            claim = a_pair("to-be").claim
            refused = unknown(names.LAUNCHED, now, ("StableImageGone", GONE))
            claim = replace(claim, annotations=marked, node_name="", provider_id="", conditions=(refused,))
            world = replace(world, claims={**world.claims, claim.name: claim})
        world = with_rules(world, rollout)
        rollout = kept(replace(rollout, status=rollout_status(rollout, world, now)))
        [stalled] = [each for each in rollout.status.conditions if each.type == "Stalled"]
        if not found or found[-1][1:] != (stalled.status, stalled.message):
            found.append((minute, stalled.status, stalled.message))
        needs = [each.what for each in rollout_needs(with_rules(world, rollout))]
        assert needs == ([f"LaunchRefused: {stalled.message}"] if stalled.status == "True" else [])
        assert rollout.status.state == RolloutState.ROLLING_BACK
    return found


def test_a_way_back_whose_launches_are_refused_is_stalled_after_an_hour_with_the_words_of_the_refusal() -> None:
    """Nothing of it goes on by itself any more; where nothing is tried it waits for what holds it."""
    words = f"no node takes the place of one at the target: StableImageGone: {GONE}"
    assert a_way_back(until=90) == [(0, "False", "")]
    assert a_way_back((2, "refused"), until=90) == [(0, "False", ""), (2, "Unknown", words), (62, "True", words)]
    between = [(minute, what) for n in range(18) for minute, what in ((5 * n, "refused"), (5 * n + 4, ""))]
    assert a_way_back(*between, until=89) == [(0, "Unknown", words), (60, "True", words)]
    assert a_way_back((2, "refused"), (7, ""), until=300)[1:] == [(2, "Unknown", words)]  # a Freeze has begun
    of_class = "no node takes the place of one at the target: AMINotFound: no image"
    assert a_way_back((2, "no class"), until=90)[1:] == [(2, "Unknown", of_class), (62, "True", of_class)]


def test_one_more_node_that_is_back_begins_the_hour_anew() -> None:
    words = f"no node takes the place of one at the target: StableImageGone: {GONE}"
    assert a_way_back((0, "refused"), (50, "one is back"), until=300) == [(0, "Unknown", words), (50, "False", "")]
    again = a_way_back((0, "refused"), (50, "one is back"), (55, "refused"), until=120)
    assert again[2:] == [(55, "Unknown", words), (115, "True", words)]
    at_last = a_way_back((0, "refused"), (70, "one is back"), until=90)
    assert at_last == [(0, "Unknown", words), (60, "True", words), (70, "False", "")]
