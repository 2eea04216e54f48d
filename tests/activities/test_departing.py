"""begin_departure, release_claim, begin_release, release_node, terminate_instance, delete_claim."""

from dataclasses import dataclass, replace
from itertools import accumulate, count, pairwise, takewhile
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.termination import terminate_instance
from dovetail.activities.termination.begin_and_end_departure import BeginAndEndDeparture
from dovetail.activities.termination.terminate_instance import TerminateInstance
from dovetail.activities.termination.unused_launches import UnusedLaunches
from dovetail.messages.inputs import NodeInput
from dovetail.messages.outcomes import StepOutcome
from dovetail.messages.requests import DeleteRequest
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.pods import Owner, Pod
from dovetail.model.reasons.endings import Ending, ended_text
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import NotReadable, Postponed, Refused, Unreachable
from dovetail.termination import timing
from dovetail.termination.leaving import EXCLUDE_LABEL, LEAVING_TAINT
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod, is_now
from worlds.disruption import a_claim, a_node
from worlds.fakes import FakeCloud, World, deleting, departure_ports

REF = ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool")
ORDER = DeleteRequest(name=REF.name, uid=REF.uid)
DELETED = 1_000.0
SILENT = (Condition(type=names.READY, status="Unknown"),)


def a_leaving_claim(**fields: Any) -> NodeClaim:
    return a_joined_claim(deleting_since=DELETED, generation=2, **fields)


def an_instance(provider_id: str = "aws:///zone/i-1", claim_uid: str = "uid-pool-1") -> Instance:
    return Instance(
        provider_id=provider_id, claim_uid=claim_uid, labels={}, annotations={}, capacity={}, allocatable={}
    )


@dataclass(slots=True)
class Stage:
    world: World
    cloud: FakeCloud
    departing: BeginAndEndDeparture
    terminating: TerminateInstance

    async def begin(self) -> Departure:
        return await self.departing.begin_departure(REF)

    async def release(self, departure: Departure) -> StepOutcome:
        """Once the instance is gone."""
        self.world.instances.pop(departure.provider_id, None)
        return await self.departing.release_claim(departure)

    def has(self, *instances: Instance) -> None:
        self.world.instances = {instance.provider_id: instance for instance in instances}


def new_stage() -> Stage:
    world = World()
    cloud = FakeCloud(world)
    stage = Stage(
        world,
        cloud,
        departing := BeginAndEndDeparture(departure_ports(world, cloud=cloud), world.now),
        TerminateInstance(departing.known, cloud, world.now, departing, world.pause),
    )
    stage.has(an_instance())
    return stage


@pytest.fixture
def stage() -> Stage:
    return new_stage()


async def test_a_deleted_claim_takes_its_node_along(stage: Stage) -> None:
    """TRM-4, LIF-52, BEH-5, BEH-67: tainted before it is deleted, so that no pod is bound in between."""
    stage.world.put(a_leaving_claim(termination_grace=300.0), a_joined_node())

    departure = await stage.begin()

    node, claim = stage.world.nodes["node-1"], stage.world.claims["pool-1"]
    assert departure.nodes == ("node-1",)
    assert (departure.provider_id, departure.deadline) == ("aws:///zone/i-1", 1300.0)
    assert (departure.reason, departure.instance_gone, departure.claim_gone) == ("Forceful Termination", False, False)
    assert node.deleting_since is not None
    assert (LEAVING_TAINT in node.taints, node.labels[EXCLUDE_LABEL]) == (True, "karpenter")
    assert claim.annotations[names.TERMINATION_DEADLINE] == "1970-01-01T00:21:40Z"
    drained = claim.condition(names.DRAINED)
    assert drained is not None
    assert (drained.status, drained.reason) == ("Unknown", "Draining")
    assert stage.world.ledger.index("patch node node-1") < stage.world.ledger.index("delete node node-1")


async def test_a_launch_in_vain_for_a_buffer_is_remembered_while_its_node_stands() -> None:
    """PLQ-32."""
    seen: list[tuple[str, bool]] = []
    stage = new_stage()

    class Remembering(UnusedLaunches):
        async def remember_for_buffers(self, claim: NodeClaim) -> None:
            seen.append((claim.name, "node-1" in stage.world.nodes))

    stage.departing.unused = Remembering(None, None, stage.world.now)  # type: ignore[arg-type]
    stage.world.put(a_leaving_claim(), a_joined_node())

    await stage.begin()

    assert seen == [("pool-1", True)]


async def test_beginning_twice_changes_nothing(stage: Stage) -> None:
    stage.world.put(a_leaving_claim(termination_grace=300.0), a_joined_node())
    first = await stage.begin()
    before = (dict(stage.world.claims), dict(stage.world.nodes))
    stage.world.clock += 100

    second = await stage.begin()

    assert (stage.world.claims, stage.world.nodes) == before
    assert replace(second, writes=()) == replace(first, writes=())


async def test_draining_is_written_once_with_upstreams_words(stage: Stage) -> None:
    """TRM-12: a claim that says how far its drain has come goes on saying it."""
    stage.world.put(a_leaving_claim(), a_joined_node())
    await stage.begin()
    written = stage.world.claims["pool-1"].condition(names.DRAINED)
    drained = is_now(names.DRAINED, changed=1_234.0)
    stage.world.put(a_leaving_claim(conditions=(*a_joined_claim().conditions, drained)), a_joined_node())
    await stage.begin()

    assert written is not None
    assert (written.status, written.reason, written.message) == ("Unknown", "Draining", "Draining")
    assert stage.world.claims["pool-1"].condition(names.DRAINED) == drained


@pytest.mark.parametrize(("pods", "says"), [((), None), ((a_web_pod(),), "Unknown")])
async def test_an_empty_node_of_a_disruption_is_not_said_to_be_draining(
    stage: Stage, pods: tuple[Pod, ...], says: str | None
) -> None:
    """TRM-12: it says a moment later that it is drained, and its mark says since when it is tainted."""
    marked = (*a_joined_claim().conditions, is_now(names.DISRUPTION_REASON, reason="Empty", changed=900.0))
    stage.world.put(a_leaving_claim(conditions=marked), a_joined_node(taints=(LEAVING_TAINT,)), *pods)

    departure = await stage.begin()

    drained = stage.world.claims["pool-1"].condition(names.DRAINED)
    assert (drained.status if drained else None) == says
    assert departure.tainted == 900.0


async def test_the_reason_is_that_of_the_disruption(stage: Stage) -> None:
    """A departure carries the reason of the disruption that deleted the claim (TRM-29, BEH-33)."""
    reason = is_now(names.DISRUPTION_REASON, reason="Drifted")
    stage.world.put(a_leaving_claim(conditions=(*a_joined_claim().conditions, reason)), a_joined_node())

    assert (await stage.begin()).reason == "Drifted"


async def test_a_departure_knows_why(stage: Stage) -> None:
    """For the record: the claim that says it is gone soon."""
    stage.world.put(
        a_leaving_claim(annotations={names.ENDED_BECAUSE: ended_text(Ending.REPAIRED, "Ready is False")}),
        a_joined_node(),
    )

    departure = await stage.begin()

    assert (departure.because, departure.because_words) == ("NodeRepaired", "Ready is False")
    assert departure.reason == "Forceful Termination", "as metrics have it (TRM-29)"


async def test_one_that_never_joined_names_its_instance_and_the_command_for_its_console(stage: Stage) -> None:
    stage.departing.console = "cloud console {instance}"
    unjoined = a_leaving_claim(
        conditions=(is_now(names.LAUNCHED),),
        annotations={names.ENDED_BECAUSE: ended_text(Ending.UNREGISTERED, "no node within 900 s")},
    )
    stage.world.put(unjoined)

    departure = await stage.begin()

    assert departure.because == "NeverRegistered"
    assert departure.because_words == "no node within 900 s; instance i-1; its console: cloud console i-1"


async def test_a_launch_that_is_given_up_writes_why_before_its_claim_goes(stage: Stage) -> None:
    stage.world.put(a_claim())
    step = deleting(stage.world)

    await step.delete_claim(replace(ORDER, because=Ending.NO_CAPACITY, because_words="sold out"))

    claim = stage.world.claims["pool-1"]
    assert (claim.deleting_since is None, claim.annotations[names.ENDED_BECAUSE]) == (False, "NoCapacity: sold out")


async def test_all_nodes_of_an_instance_leave(stage: Stage) -> None:
    """LIF-52, BEH-71."""
    stage.world.put(a_leaving_claim(), a_joined_node("node-1"), a_joined_node("node-2"))

    departure = await stage.begin()

    assert departure.nodes == ("node-1", "node-2")
    assert all(node.deleting_since for node in stage.world.nodes.values())


@pytest.mark.parametrize("owned", [True, False], ids=["as it was", "made anew by its kubelet"])
async def test_a_node_whose_instance_nobody_has_written_on_it_yet_leaves_with_its_claim(
    stage: Stage, owned: bool
) -> None:
    """LIF-52: the claim names it. Without a drain its pods would run until the instance ends; and without a finalizer
    it would be gone at once, with nothing left to drain."""
    fields: dict[str, Any] = {} if owned else {"owners": (), "finalizers": ()}
    stage.world.put(a_leaving_claim(), a_joined_node(provider_id="", **fields))

    departure = await stage.begin()

    node = stage.world.nodes["node-1"]
    assert (departure.nodes, departure.node_uids) == (("node-1",), (node.uid,))
    assert LEAVING_TAINT in node.taints and node.deleting_since is not None

    await stage.release(departure)

    assert stage.world.nodes == {} and stage.world.claims == {}


async def test_a_node_of_another_instance_that_has_got_the_name_is_left_alone(stage: Stage) -> None:
    stage.world.put(a_leaving_claim(), a_joined_node(provider_id="aws:///zone/i-9"))

    assert (await stage.begin()).nodes == ()


async def test_a_node_that_never_registered_is_left_alone(stage: Stage) -> None:
    """LIF-52, BEH-74."""
    stage.world.put(a_leaving_claim(conditions=(is_now(names.LAUNCHED),)), a_node())

    departure = await stage.begin()

    assert departure.nodes == ()
    assert stage.world.nodes["node-1"].deleting_since is None


async def test_a_node_with_our_finalizer_leaves_although_the_claim_does_not_know(stage: Stage) -> None:
    """DUR-5: registered on the node, not yet on the claim."""
    stage.world.put(a_leaving_claim(conditions=(is_now(names.LAUNCHED),)), a_joined_node())

    assert (await stage.begin()).nodes == ("node-1",)


async def test_an_instance_that_was_never_written_down_is_found(stage: Stage) -> None:
    """DUR-3: the claim was deleted while the launch was under way."""
    stage.world.put(a_claim(deleting_since=DELETED))
    stage.has(an_instance("aws:///zone/i-9"))

    assert (await stage.begin()).provider_id == "aws:///zone/i-9"


async def test_a_claim_that_launched_nothing_touches_no_node(stage: Stage) -> None:
    """LIF-54, PLM-3, BEH-72: an empty providerID matches nothing."""
    stage.world.put(a_claim(deleting_since=DELETED), a_joined_node(provider_id=""))
    stage.has()

    departure = await stage.begin()

    assert (departure.provider_id, departure.nodes) == ("", ())
    assert stage.world.nodes["node-1"].deleting_since is None


async def test_a_silent_node_without_instance_is_not_drained(stage: Stage) -> None:
    """TRM-5, BEH-16: no taint either."""
    stage.world.put(a_leaving_claim(), a_joined_node(conditions=SILENT))
    stage.has()

    departure = await stage.begin()

    assert departure.instance_gone
    assert stage.world.nodes["node-1"].taints == ()


@pytest.mark.parametrize(("conditions", "instances"), [(SILENT, 1), (a_joined_node().conditions, 0)])
async def test_silence_alone_or_a_missing_instance_alone_is_not_enough(
    stage: Stage, conditions: tuple[Condition, ...], instances: int
) -> None:
    """TRM-5, BEH-17."""
    stage.world.put(a_leaving_claim(), a_joined_node(conditions=conditions))
    stage.has(*[an_instance()][:instances])

    assert not (await stage.begin()).instance_gone


async def test_a_claim_that_is_gone_or_lost_its_finalizer_needs_nothing(stage: Stage) -> None:
    """LIF-50."""
    assert await stage.begin() == Departure(claim=REF, claim_gone=True)
    stage.world.put(a_leaving_claim(finalizers=("other/finalizer",)))
    assert await stage.begin() == Departure(claim=REF, claim_gone=True)


async def test_a_claim_that_was_not_deleted_is_never_terminated(stage: Stage) -> None:
    stage.world.put(a_joined_claim(), a_joined_node())

    with pytest.raises(Refused):
        await stage.begin()
    assert stage.world.nodes["node-1"].deleting_since is None


async def test_the_finalizers_come_off_and_everything_is_gone(stage: Stage) -> None:
    """TRM-11, LIF-55."""
    stage.world.put(a_leaving_claim(), a_joined_node())
    departure = await stage.begin()

    outcome = await stage.release(departure)

    assert (stage.world.claims, stage.world.nodes) == ({}, {})
    assert {(write.kind, write.version) for write in outcome.writes} == {("Node", 0), ("NodeClaim", 0)}
    again = await stage.release(departure)
    assert again.message == "already gone"


async def test_finalizers_of_others_stay(stage: Stage) -> None:
    """TRM-11."""
    stage.world.put(
        a_leaving_claim(finalizers=(names.TERMINATION_FINALIZER, "other/claim")),
        a_joined_node(),
        a_joined_node("node-2", finalizers=("other/node", names.TERMINATION_FINALIZER)),
    )
    departure = await stage.begin()

    with pytest.raises(Postponed):
        await stage.release(departure)
    assert stage.world.nodes["node-2"].finalizers == ("other/node",)
    del stage.world.nodes["node-2"]
    await stage.release(departure)

    assert stage.world.claims["pool-1"].finalizers == ("other/claim",)


async def test_a_claim_stays_until_its_node_is_gone(stage: Stage) -> None:
    """LIF-52, TRM-37: whatever holds the Node, its claim goes on saying that there is one, and names who holds it."""
    stage.world.put(a_leaving_claim(), a_joined_node(finalizers=("backup.example/agent", names.TERMINATION_FINALIZER)))
    departure = await stage.begin()

    for _ in range(2):
        with pytest.raises(Postponed, match=r"Node node-1 is held by the finalizer backup\.example/agent"):
            await stage.release(departure)
    assert stage.world.nodes["node-1"].finalizers == ("backup.example/agent",)
    assert names.TERMINATION_FINALIZER in stage.world.claims["pool-1"].finalizers
    del stage.world.nodes["node-1"]
    await stage.release(departure)

    assert stage.world.claims == {}


async def test_a_node_that_was_registered_meanwhile_keeps_the_claim_as_well(stage: Stage) -> None:
    """At every try: by the second one it no longer carries our finalizer."""
    stage.world.put(a_leaving_claim(conditions=(is_now(names.LAUNCHED),)), a_node())
    departure = await stage.begin()
    stage.world.put(a_joined_node(finalizers=("backup.example/agent", names.TERMINATION_FINALIZER)))

    for _ in range(2):
        with pytest.raises(Postponed, match=r"backup\.example/agent"):
            await stage.release(departure)

    assert "pool-1" in stage.world.claims


async def test_a_node_that_others_hold_leaves_the_release_to_its_own_step(stage: Stage) -> None:
    """Each try of the release asks nothing of the cloud, and the end of the instance is counted and told once."""
    stage.world.put(a_leaving_claim(), a_joined_node(finalizers=("other/node", names.TERMINATION_FINALIZER)))
    stage.terminating.departing = stage.departing
    departure = await stage.begin()

    outcome = await stage.terminating.terminate_instance(departure)

    assert not outcome.released and "gone" in outcome.message
    assert stage.world.nodes["node-1"].finalizers == ("other/node",)
    assert (stage.world.instances, set(stage.world.claims)) == ({}, {"pool-1"})


def test_a_node_that_is_held_for_a_week_costs_some_hundred_tries() -> None:
    waits = accumulate(timing.HELD_LOOKS.pause(attempt) for attempt in count(1))
    until = list(takewhile(lambda passed: passed < 7 * 86_400.0, waits))

    assert timing.HELD_LOOKS.pause(1) == 1.0
    assert len(until) < 750
    assert all(later <= 1.2 * earlier + 1.01 for earlier, later in pairwise(until)), "late by a fifth at most"


async def test_another_node_of_the_same_name_keeps_its_finalizer(stage: Stage) -> None:
    stage.world.put(a_leaving_claim(), a_joined_node())
    departure = await stage.begin()
    stage.world.put(a_joined_node(uid="another", provider_id="aws:///zone/i-2"))

    await stage.release(departure)

    assert stage.world.nodes["node-1"].finalizers == (names.TERMINATION_FINALIZER,)


async def test_a_node_that_the_look_up_does_not_know_yet_is_found_by_the_name_on_its_claim(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that lags must not cost the pods their drain."""

    stage.world.put(a_leaving_claim(), a_joined_node())
    monkeypatch.setattr(stage.departing.known.lookups, "nodes_of", lambda provider_id: ())

    assert (await stage.begin()).nodes == ("node-1",)


async def test_a_node_that_was_registered_meanwhile_is_let_go_as_well(stage: Stage) -> None:
    """DUR-5: the claim was deleted between its node's write and its own."""
    stage.world.put(a_leaving_claim(conditions=(is_now(names.LAUNCHED),)), a_node())
    departure = await stage.begin()
    stage.world.put(a_joined_node(), a_joined_node("other", provider_id="aws:///zone/i-2"))

    await stage.release(departure)

    assert set(stage.world.nodes) == {"other"}
    assert stage.world.claims == {}


async def test_a_departure_begins_with_what_the_watch_has_shown(stage: Stage) -> None:
    """Nothing takes a deletion back, and each write carries the version that it was decided on."""
    stage.world.put(a_leaving_claim(), a_joined_node())

    departure = await stage.begin()

    assert departure.nodes == ("node-1",) and departure.is_final
    assert "get claim pool-1" not in stage.world.ledger


async def test_a_deletion_that_the_cache_has_not_seen_is_read(stage: Stage) -> None:
    stage.world.put(a_joined_claim(), a_joined_node())
    before = stage.world.claims["pool-1"]
    stage.world.put(a_leaving_claim())
    stage.departing.known.lookups.claim = lambda name: before  # type: ignore[method-assign]

    departure = await stage.begin()

    assert departure.nodes == ("node-1",) and not departure.claim_gone
    assert "get claim pool-1" in stage.world.ledger


async def test_the_end_of_an_instance_releases_its_claim_in_the_same_step(stage: Stage) -> None:
    """Decision 274: nothing is waited for between the two."""
    stage.world.put(a_leaving_claim(), a_joined_node())
    stage.terminating.departing = stage.departing
    stage.cloud.lingers = 1
    stage.world.at(1000.4, lambda: left.extend((*stage.world.claims, *stage.world.nodes)))
    departure, left = await stage.begin(), list[str]()

    outcome = await stage.terminating.terminate_instance(departure)

    assert outcome.released and left == ["pool-1", "node-1"]
    assert (stage.world.instances, stage.world.claims, stage.world.nodes) == ({}, {}, {})


async def test_a_release_that_fails_is_tried_again_with_the_end_of_the_instance(stage: Stage) -> None:
    stage.world.put(a_leaving_claim(), a_joined_node())
    stage.terminating.departing = stage.departing
    departure, release = await stage.begin(), stage.departing.release

    async def fail(departure: Departure, claim: NodeClaim | None) -> StepOutcome:
        raise Unreachable("NodeClaim/pool-1", "it is away")

    stage.departing.release = fail  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        await stage.terminating.terminate_instance(departure)
    stage.departing.release = release  # type: ignore[method-assign]

    assert (await stage.terminating.terminate_instance(departure)).released
    assert (stage.world.instances, stage.world.claims) == ({}, {})


@pytest.mark.parametrize(("text", "since"), [('"1970-01-01T00:10:00Z"', 600.0), ('"by hand"', None), (None, None)])
async def test_a_departure_says_since_when_no_reservation_covers_its_instance(
    stage: Stage, text: str | None, since: float | None
) -> None:
    annotations = {} if text is None else {names.REMEMBERED: f'{{"v":1,"entries":[{{"on_demand_since":{text}}}]}}'}
    stage.world.put(a_leaving_claim(annotations=annotations), a_joined_node())

    assert (await stage.begin()).on_demand_since == since


async def test_a_release_that_is_tried_again_still_says_when_the_instance_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.world.put(a_leaving_claim(), a_joined_node())
    stage.terminating.departing, stage.cloud.lingers = stage.departing, 2
    departure, release = await stage.begin(), stage.departing.release
    kept = list[str]()
    monkeypatch.setattr(terminate_instance, "keep", kept.append)

    async def fail(departure: Departure, claim: NodeClaim | None) -> StepOutcome:
        raise Unreachable("NodeClaim/pool-1", "it is away")

    stage.departing.release = fail  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        await stage.terminating.terminate_instance(departure)
    stage.departing.release, stage.world.clock = release, 5000.0  # type: ignore[method-assign]
    again = ActivityEnvironment()
    again.info = replace(again.info, attempt=2, heartbeat_details=["", kept])

    outcome = await again.run(stage.terminating.terminate_instance, departure)

    assert outcome.released and (outcome.asked, outcome.gone) == (1000.0, 1000.75)


async def test_a_late_launch_does_not_outlive_the_finalizer(stage: Stage) -> None:
    """DUR-3, DUR-30: an attempt that was called off did launch after all, between the look and the release."""
    stage.world.put(a_claim(deleting_since=DELETED))
    stage.has()
    departure = await stage.begin()
    stage.has(an_instance("aws:///zone/i-late"))
    stage.cloud.lingers = 1

    with pytest.raises(Postponed, match="i-late"):
        await stage.release(departure)
    assert "pool-1" in stage.world.claims
    await stage.release(departure)

    assert (stage.world.instances, stage.world.claims) == ({}, {})


async def test_the_instance_is_asked_to_go_until_it_is_gone(stage: Stage) -> None:
    """TRM-35, TRM-36."""
    stage.world.put(a_leaving_claim(), a_joined_node())
    departure = await stage.begin()
    stage.cloud.lingers = 1
    meanwhile: list[NodeClaim] = []
    stage.world.at(1000.4, lambda: meanwhile.append(stage.world.claims["pool-1"]))

    await stage.terminating.terminate_instance(departure)

    assert [claim.is_true(names.INSTANCE_TERMINATING) for claim in meanwhile] == [True]
    assert meanwhile[0].is_true(names.READY)  # BEH-68
    assert (stage.world.instances, stage.world.clock) == ({}, 1000.5)
    assert stage.world.ledger.count("patch status pool-1") == 2  # Draining, InstanceTerminating


@pytest.mark.parametrize(("tainted", "since"), [(True, 900.0), (False, 1000.0)])
async def test_the_drain_counts_from_the_taint(stage: Stage, tainted: bool, since: float) -> None:
    """TRM-17: a disruption has tainted its nodes long before; a condition without the taint proves nothing."""
    marked = (*a_joined_claim().conditions, is_now(names.DISRUPTION_REASON, reason="Drifted", changed=900.0))
    stage.world.put(a_leaving_claim(conditions=marked), a_joined_node(taints=(LEAVING_TAINT,) if tainted else ()))
    if tainted:
        node = stage.world.nodes["node-1"]
        stage.world.put(replace(node, labels={**node.labels, EXCLUDE_LABEL: "karpenter"}))

    assert (await stage.begin()).tainted == since


async def test_a_second_try_counts_from_the_first(stage: Stage) -> None:
    """DUR-11: it finds the taint, and since when the claim says Draining."""
    stage.world.put(a_leaving_claim(), a_joined_node())
    await stage.begin()
    stage.world.clock += 2.0

    assert (await stage.begin()).tainted == 1000.0


async def test_nothing_is_terminated_for_a_claim_that_launched_nothing(stage: Stage) -> None:
    """LIF-54."""
    stage.has()

    outcome = await stage.terminating.terminate_instance(Departure(claim=REF))

    assert outcome.message == "nothing was ever launched for it"


async def test_an_instance_that_was_launched_late_is_terminated_all_the_same(stage: Stage) -> None:
    """DUR-3."""
    await stage.terminating.terminate_instance(Departure(claim=REF))

    assert stage.world.instances == {}


@pytest.mark.parametrize(
    ("uid", "why"),
    [("uid-pool-1", "is not being deleted"), ("uid-of-another", "aws:///zone/i-1 is not its instance")],
)
async def test_the_instance_of_a_claim_that_nobody_deleted_is_terminated_for_nobody(
    stage: Stage, uid: str, why: str
) -> None:
    """Whoever may write to the namespace of Temporal may ask for any step, with any input."""
    stage.world.put(a_joined_claim(), a_joined_node())
    forged = Departure(claim=replace(REF, uid=uid), provider_id="aws:///zone/i-1")

    with pytest.raises(Refused, match=f"NodeClaim/pool-1: {why}"):
        await stage.terminating.terminate_instance(forged)

    assert list(stage.world.instances) == ["aws:///zone/i-1"]


@pytest.mark.parametrize(
    ("pod", "claim", "gone", "ends"),
    [
        ({}, {}, False, False),
        ({"created": DELETED + 5.0}, {}, False, True),  # nobody has promised that it leaves
        ({"deleting_since": DELETED, "grace_seconds": 30}, {}, False, False),
        ({}, {"termination_grace": 1.0}, False, True),
        ({}, {"conditions": (is_now(names.LAUNCHED),)}, False, True),
        ({}, {}, True, True),
    ],
)
async def test_an_instance_whose_pods_are_still_to_leave_does_not_end_whoever_says_that_it_is_gone(
    stage: Stage, pod: dict[str, Any], claim: dict[str, Any], gone: bool, ends: bool
) -> None:
    """DUR-32."""
    world = stage.world
    world.put(a_leaving_claim(**claim), a_joined_node(created=DELETED - 60.0))
    world.put(a_web_pod("held", node_name="node-1", **{"created": DELETED - 30.0, **pod}))
    world.clock = DELETED + 10.0
    departure = replace(await stage.begin(), instance_gone=True, nodes=(), node_uids=())
    if gone:
        stage.has()

    try:
        await stage.terminating.terminate_instance(departure)
    except Refused as refused:
        assert "pods are still to leave its node: apps/held" in str(refused)
        assert "aws:///zone/i-1" in world.instances and not ends
    else:
        assert ends and not world.instances


async def test_a_pod_that_only_the_cache_shows_holds_no_instance(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.world.put(a_leaving_claim(), a_joined_node(created=DELETED - 60.0))
    departure = await stage.begin()
    gone = a_web_pod("gone", node_name="node-1", created=DELETED - 30.0)
    monkeypatch.setattr(stage.departing.known.lookups, "pods_on", lambda node: (gone,))

    assert (await stage.terminating.terminate_instance(departure)).released


async def test_no_instance_is_terminated_for_a_claim_without_a_name(stage: Stage) -> None:
    forged = Departure(claim=ClaimRef(name="", uid="", pool=""), provider_id="aws:///zone/i-1")

    with pytest.raises(Refused, match="none is named that leaves"):
        await stage.terminating.terminate_instance(forged)

    assert list(stage.world.instances) == ["aws:///zone/i-1"]


async def test_a_node_without_a_claim_is_tainted_and_released(stage: Stage) -> None:
    """TRM-10, BEH-2: its instance is not ours to end."""
    stage.world.put(a_joined_node(deleting_since=DELETED))

    departure = await stage.departing.begin_release(NodeInput(cluster="c", node="node-1", uid="uid-node-1"))
    assert LEAVING_TAINT in stage.world.nodes["node-1"].taints
    assert (departure.deadline, departure.claim.uid) == (None, "")
    await stage.departing.release_node(departure)

    assert stage.world.nodes == {}
    assert len(stage.world.instances) == 1


@pytest.mark.parametrize(
    "given",
    [
        NodeInput(cluster="c", node="node-1", uid="another"),
        NodeInput(cluster="c", node="node-2", uid="uid-node-2"),
        NodeInput(cluster="c", node="free", uid="uid-free"),
    ],
)
async def test_a_node_that_is_gone_or_not_ours_is_left_alone(stage: Stage, given: NodeInput) -> None:
    """TRM-2."""
    stage.world.put(a_joined_node(deleting_since=DELETED), a_joined_node("free", deleting_since=DELETED, finalizers=()))
    before = dict(stage.world.nodes)

    departure = await stage.departing.begin_release(given)

    assert (departure.claim_gone, departure.nodes, stage.world.nodes) == (True, (), before)


async def test_a_node_whose_claim_nobody_can_read_is_not_released_without_it(stage: Stage) -> None:
    """TRM-10, TRM-47. No snapshot has that claim, and it may have hooks: no taint and no drain before it is read."""
    owner = Owner(api_version="karpenter.sh/v1", kind="NodeClaim", name="pool-1", uid="uid-pool-1")
    stage.world.put(a_joined_claim(deleting_since=DELETED), a_joined_node(deleting_since=DELETED, owners=(owner,)))
    given, before = NodeInput(cluster="c", node="node-1", uid="uid-node-1"), dict(stage.world.nodes)

    stage.world.unreadable.add("pool-1")
    with pytest.raises(NotReadable):
        await stage.departing.begin_release(given)
    stage.world.unreadable.clear()
    with pytest.raises(Refused, match="NodeClaim pool-1 stands for it"):
        await stage.departing.begin_release(given)
    assert stage.world.nodes == before

    del stage.world.claims["pool-1"]
    assert (await stage.departing.begin_release(given)).nodes == ("node-1",)


async def test_a_claim_is_deleted_once_and_only_the_one_that_is_meant(stage: Stage) -> None:
    stage.world.put(a_claim())
    step = deleting(stage.world)

    other = await step.delete_claim(replace(ORDER, uid="another"))
    assert (other.message, stage.world.claims["pool-1"].deleting_since) == ("already gone", None)
    with pytest.raises(Refused, match="no UID says which claim of that name is meant"):
        await step.delete_claim(replace(ORDER, uid=""))
    outcome = await step.delete_claim(ORDER)

    claim = stage.world.claims["pool-1"]
    assert claim.deleting_since is not None
    assert [write.version for write in outcome.writes] == [int(claim.resource_version)]
    assert stage.world.notices == []  # no disruption marked it: what ordered the delete publishes the reason


async def test_a_notice_is_published_when_a_marked_claim_is_deleted(stage: Stage) -> None:
    """DIS-151."""
    marked = Condition(type="DisruptionReason", status="True", reason="Drifted")
    stage.world.put(a_joined_claim(conditions=(marked,)), a_joined_node())
    step = deleting(stage.world)

    await step.delete_claim(ORDER)

    published = [(n.kind, n.name, n.reason, n.message) for n in stage.world.notices]
    assert published == [
        ("NodeClaim", "pool-1", "DisruptionTerminating", "Disrupting NodeClaim: Drifted"),
        ("Node", "node-1", "DisruptionTerminating", "Disrupting Node: Drifted"),
    ]
