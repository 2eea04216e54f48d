"""drain_node and await_detached: pods out politely, then volumes off (TRM-12 to TRM-34)."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import pytest

from dovetail.activities.termination.await_detached import AwaitDetached
from dovetail.activities.termination.begin_and_end_departure import FORCEFUL
from dovetail.activities.termination.drain_node import DrainNode
from dovetail.activities.termination.eviction_pace import EvictionPace
from dovetail.adapters.kubernetes_json.parsing.workloads import parse_volume, parse_volume_claim
from dovetail.messages.outcomes import DrainOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.model.objects.workloads import PodDisruptionBudget, VolumeAttachment
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pods import Expression, LabelSelector, Pod, VolumeUse
from dovetail.model.values.time import format_time
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import NotReadable, Unreachable
from dovetail.ports.objects import Eviction
from tests.activities.test_departing import an_instance
from tests.lifecycle.objects import DAEMON, EVERYTHING, a_joined_claim, a_joined_node, a_web_pod, is_now
from worlds.fakes import (
    FakeCloud,
    FakeLookups,
    FakeNodes,
    FakeNotices,
    FakePods,
    PodsMadeAnew,
    World,
    detach_ports,
    drain_ports,
    unlimited,
)

START = 1000.0
DEPARTURE = Departure(
    claim=ClaimRef(name="pool-1", uid="uid-pool-1", pool="pool"),
    provider_id="aws:///zone/i-1",
    nodes=("node-1",),
    node_uids=("uid-node-1",),
    reason="Drifted",
)
BUDGET = PodDisruptionBudget(name="web", namespace="apps", selector=LabelSelector())
OTHERS = Expression(key="app", operator="In", values=("other",))
DRAINING = is_now(names.DRAINED, "Unknown", reason="Draining", changed=START)


def say_on_claim(world: World, deadline: float | None, reason: str) -> None:
    """A deadline unless it has one, and the reason of its disruption: a drain asks nobody else for them."""
    claim = world.claims["pool-1"]
    others = tuple(each for each in claim.conditions if each.type != names.DISRUPTION_REASON)
    because = () if reason == FORCEFUL else (is_now(names.DISRUPTION_REASON, reason=reason),)
    due = {} if deadline is None else {names.TERMINATION_DEADLINE: format_time(deadline)}
    world.put(replace(claim, annotations={**due, **claim.annotations}, conditions=(*others, *because)))


@dataclass(slots=True)
class Stage:
    world: World
    pods: FakePods
    cloud: FakeCloud
    drain: DrainNode
    detach: AwaitDetached

    def holds(self, *pods: Pod) -> None:
        self.world.put(*pods)

    def says(self, deadline: float | None = None, reason: str = "Drifted") -> None:
        say_on_claim(self.world, deadline, reason)

    async def run(self, deadline: float | None = None, reason: str = "Drifted", **fields: object) -> DrainOutcome:
        self.says(deadline, reason)
        return await self.drain.drain_node(replace(DEPARTURE, **fields))  # type: ignore[arg-type]

    def evictions(self) -> list[str]:
        return [line.split()[1] for line in self.world.ledger if line.startswith("evict")]

    def forced(self) -> list[tuple[str, int]]:
        lines = (line.split() for line in self.world.ledger if line.startswith("force"))
        return [(line[1], int(line[2])) for line in lines]


def new_stage() -> Stage:
    world = World(clock=START)
    world.put(
        a_joined_claim(deleting_since=START, conditions=(*a_joined_claim().conditions, DRAINING)),
        a_joined_node(deleting_since=START),
    )
    world.instances = {"aws:///zone/i-1": an_instance()}
    pods, cloud, lookups, notices = FakePods(world), FakeCloud(world), FakeLookups(world), FakeNotices(world)
    nodes = FakeNodes(world)
    ports = drain_ports(world, lookups=lookups, nodes=nodes, pods=pods, notices=notices, cloud=cloud)
    return Stage(
        world,
        pods,
        cloud,
        DrainNode(ports, unlimited(EvictionPace(world.now, world.pause)), world.now, world.pause),
        AwaitDetached(detach_ports(world, lookups=lookups, nodes=nodes, cloud=cloud), world.now, world.pause),
    )


@pytest.fixture
def stage() -> Stage:
    return new_stage()


@pytest.mark.parametrize(("tainted", "drained"), [(None, 1003.0), (1000.6, 1003.6), (900.0, 1000.0)])
async def test_an_empty_node_is_drained_three_seconds_after_its_taint(
    stage: Stage, tainted: float | None, drained: float
) -> None:
    """TRM-17, BEH-24. A drain before the delete does not know the taint: there the condition counts."""
    assert await stage.run(tainted=tainted) == DrainOutcome(message="drained")
    assert drained <= stage.world.clock <= drained + 0.5


@pytest.mark.parametrize("tainted", [None, 1000.0])
async def test_a_restart_does_not_begin_the_three_seconds_anew(stage: Stage, tainted: float | None) -> None:
    """DUR-11: they count from what is stored."""
    stage.world.clock = 1002.5

    await stage.run(tainted=tainted)

    assert stage.world.clock <= 1003.5


async def test_a_node_without_a_claim_waits_for_nothing(stage: Stage) -> None:
    """TRM-10."""
    await stage.run(claim=ClaimRef(name="", uid=""))

    assert stage.world.clock == START


async def test_pods_are_evicted_by_tiers(stage: Stage) -> None:
    """TRM-15, TRM-25, BEH-13, DUR-30: the next tier is asked when the one before has gone."""
    stage.holds(
        a_web_pod("agent", owners=(DAEMON,)),
        a_web_pod("web-2"),
        a_web_pod("web-1"),
        a_web_pod("dns", priority=2 * 10**9),
    )

    await stage.run()

    assert stage.evictions() == ["web-1", "web-2", "agent", "dns"]
    assert {n.message for n in stage.world.notices if n.reason == "Evicted"} == {"Evicted pod: Drifted"}


async def test_a_pod_that_the_cache_has_not_shown_yet_is_not_forgotten(stage: Stage) -> None:
    """The live look before "drained"."""
    stage.holds(a_web_pod("late"))
    stage.world.hidden.add("late")

    await stage.run()

    assert (stage.evictions(), stage.world.pods) == (["late"], {})


async def test_a_pod_that_appears_during_the_drain_is_evicted_too(stage: Stage) -> None:
    """TRM-18."""
    stage.world.at(1003.0, lambda: stage.holds(a_web_pod("late")))

    await stage.run()

    assert stage.evictions() == ["late"]


async def test_pods_that_are_made_anew_on_the_node_hold_it_no_longer_than_its_deadline(stage: Stage) -> None:
    """TRM-13. Every other pod has its whole time until then."""
    stage.drain.pods = stage.drain.evictor.pods = PodsMadeAnew(stage.world, until=START + 200.0)
    stage.holds(a_web_pod("other"), a_web_pod("web"))
    stage.world.at(START + 20.0, lambda: stage.world.put(a_web_pod("late", created=START + 20.0)))

    assert await stage.run(deadline=START + 60.0) == DrainOutcome(message="drained")

    assert START + 60.0 <= stage.world.clock <= START + 75.0
    assert all(pod.created > START + 60.0 for pod in stage.world.pods.values())


async def test_a_blocked_pod_is_asked_again_with_growing_pauses_and_named(stage: Stage) -> None:
    """TRM-26, BEH-12, BEH-31: 100 ms doubling to 10 s; a notice on the node says why."""
    stage.holds(a_web_pod())
    stage.pods.answers["uid-web-1"] = "blocked"
    stage.world.at(1060.0, lambda: stage.pods.answers.clear())

    await stage.run()

    assert len(stage.evictions()) == 13
    messages = {n.message for n in stage.world.notices if n.reason == "FailedDraining"}
    assert messages == {
        "Failed to drain node, evicting pod apps/web-1 violates a PDB",
        "Failed to drain node, 1 pod is waiting to be evicted",  # accepted, and not gone yet
    }


@pytest.mark.parametrize(
    "then",
    [
        [],
        [replace(BUDGET, disruptions_allowed=1)],
        [replace(BUDGET, selector=LabelSelector(expressions=(OTHERS,)))],
    ],
)
async def test_a_pod_is_asked_for_at_once_when_its_pdb_lets_it_go(
    stage: Stage, then: list[PodDisruptionBudget]
) -> None:
    """Not only after the pause, which is ten seconds by then."""
    stage.holds(a_web_pod())
    stage.pods.answers["uid-web-1"] = "blocked"
    stage.world.budgets = [BUDGET]

    def let_go() -> None:
        stage.world.budgets = then
        stage.pods.answers.clear()

    stage.world.at(1054.0, let_go)

    await stage.run()

    asked = [float(line.split()[2]) for line in stage.world.ledger if line.startswith("evict")]
    assert 1054.0 <= asked[-1] <= 1055.0
    assert stage.world.clock <= 1057.0


@pytest.mark.parametrize(
    "then",
    [
        replace(BUDGET, min_available="2"),
        replace(BUDGET, name="another", disruptions_allowed=3, selector=LabelSelector(expressions=(OTHERS,))),
    ],
)
async def test_a_pdb_that_still_holds_the_pod_or_concerns_others_costs_no_request(
    stage: Stage, then: PodDisruptionBudget
) -> None:
    stage.holds(a_web_pod())
    stage.pods.answers["uid-web-1"] = "blocked"
    stage.world.budgets = [BUDGET]
    for second in range(1, 60):
        budgets = [BUDGET, then] if then.name != BUDGET.name else [then]
        stage.world.at(START + second, lambda budgets=budgets: setattr(stage.world, "budgets", list(budgets)))  # type: ignore[misc]
    stage.world.at(1060.0, lambda: stage.pods.answers.clear())

    await stage.run()

    assert len(stage.evictions()) == 13  # as where nothing changes


async def test_several_pdbs_are_distinguished_from_one_that_blocks(stage: Stage) -> None:
    """TRM-26, BEH-31."""
    stage.holds(a_web_pod())
    stage.pods.answers["uid-web-1"] = "unsupported"
    stage.world.at(1020.0, lambda: stage.pods.answers.clear())

    await stage.run()

    assert any("more than one PDB" in n.message for n in stage.world.notices if n.reason == "FailedDraining")


@pytest.mark.parametrize("answer", ["gone", "replaced"])
async def test_a_pod_that_is_gone_or_replaced_is_no_failure_and_no_event(stage: Stage, answer: str) -> None:
    """TRM-26, BEH-29."""
    pod = a_web_pod()
    stage.holds(pod)
    stage.pods.answers[pod.uid] = answer  # type: ignore[assignment]
    stage.world.at(1001.5, lambda: stage.world.kill(pod))

    await stage.run()

    assert stage.world.said() == set()


async def test_a_request_that_fails_is_tried_again(stage: Stage) -> None:
    stage.holds(a_web_pod())
    stage.pods.fails["uid-web-1"] = Unreachable("Pod/web-1", "no answer")
    stage.world.at(1003.0, lambda: stage.pods.fails.clear())

    assert (await stage.run()).message == "drained"


async def test_a_protected_pod_holds_the_node_until_its_annotation_goes(stage: Stage) -> None:
    """TRM-24, BEH-120."""
    pod = a_web_pod(do_not_disrupt="true")
    stage.holds(pod)
    stage.world.at(2000.0, lambda: stage.holds(replace(pod, do_not_disrupt=None)))

    await stage.run()

    assert (stage.evictions(), stage.world.clock > 2000.0) == (["web-1"], True)


async def test_a_pod_outside_its_own_window_holds_the_node_until_it_opens(stage: Stage) -> None:
    """At 1200 it is twenty minutes past midnight."""
    stage.holds(a_web_pod(disruption_window="Thu 00:20-01:00"))

    await stage.run()

    assert (stage.evictions(), 1200.0 <= stage.world.clock < 1300.0) == (["web-1"], True)


async def test_a_bad_annotation_is_reported_and_holds_nothing(stage: Stage) -> None:
    """TRM-24, EVT-9, BEH-118."""
    stage.holds(a_web_pod(do_not_disrupt="1d"))

    await stage.run()

    assert {n.type for n in stage.world.notices if n.reason == "InvalidDoNotDisruptAnnotation"} == {"Warning"}
    assert stage.world.clock < 1010.0


async def test_a_blocked_pod_is_forced_when_its_grace_no_longer_fits(stage: Stage) -> None:
    """TRM-14, TRM-27, BEH-34, EVT-2: a grace of 30 s before a deadline at 1300."""
    stage.holds(a_web_pod(do_not_disrupt="true", grace_seconds=30))

    await stage.run(deadline=1300.0)

    (first, *_) = stage.forced()
    assert first[0] == "web-1"
    assert 28 <= first[1] <= 29
    assert "granted" in next(n.message for n in stage.world.notices if n.reason == "Disrupted")
    assert stage.world.clock <= 1302.0


async def test_a_pod_that_lingers_is_forced_again_after_growing_pauses(stage: Stage) -> None:
    """TRM-28: past the deadline each new deletion would end after it, so force is due again and again."""
    pod = a_web_pod()
    stage.holds(pod)
    stage.pods.lingers = True
    stage.world.at(1060.0, lambda: stage.world.kill(pod))

    await stage.run(deadline=START - 1.0)

    times = [float(line.split()[3]) for line in stage.world.ledger if line.startswith("force")]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert 8 <= len(times) <= 14
    assert max(pauses) > 5.0
    assert all(pause <= 11.0 for pause in pauses)


@pytest.mark.parametrize(("reason", "forced"), [("Drifted", 3), ("Requested", 0)])
async def test_no_grace_period_takes_a_node_past_its_pdb_that_a_person_asks_for(
    stage: Stage, reason: str, forced: int
) -> None:
    """Four pods of an application of which one may be away: each leaves when the one before it runs again."""
    mark = is_now(names.DISRUPTION_REASON, reason=reason, changed=START)
    conditions = (*stage.world.claims["pool-1"].conditions, mark)
    claim = a_joined_claim(annotations={names.OWNER: "o"}, termination_grace=60.0, conditions=conditions)
    stage.world.put(claim, a_joined_node())
    pods = [a_web_pod(f"web-{n}") for n in range(4)]
    stage.holds(*pods)
    for number, pod in enumerate(pods[1:], 1):
        stage.pods.answers[pod.uid] = "blocked"
        stage.world.at(START + 120.0 * number, partial(stage.pods.answers.__delitem__, pod.uid))

    outcome = await stage.drain.drain_node(replace(DEPARTURE, reason=reason, deadline=START + 60.0))

    assert (outcome.message, len(stage.forced())) == ("drained", forced)
    assert (stage.world.clock > START + 360.0) == (not forced)


class SlowWatch(FakePods):
    """Evictions are accepted, and the cache shows it much later."""

    async def evict(self, pod: Pod) -> Eviction:
        self.world.ledger.append(f"evict {pod.name} {self.world.clock:.1f}")
        return Eviction(outcome="evicted", code=201)


async def test_an_eviction_that_the_watch_is_slow_to_show_is_told_once_and_asked_for_seldom(stage: Stage) -> None:
    """TRM-26: asking again does no harm, since the pod leaves; but it is one pod that was drained, not twenty."""
    pod = a_web_pod()
    stage.holds(pod)
    stage.drain.evictor.pods = SlowWatch(stage.world)
    stage.world.at(1015.0, lambda: stage.world.kill(pod))

    await stage.run()

    assert stage.evictions() == ["web-1", "web-1"]
    assert [n.reason for n in stage.world.notices].count("Evicted") == 1


async def test_a_pod_that_was_to_be_left_alone_is_forced_as_soon_as_its_grace_no_longer_fits(stage: Stage) -> None:
    """TRM-14: the pause between two evictions, which grows to ten seconds, takes nothing from a pod's own grace."""
    stage.holds(a_web_pod(grace_seconds=30))
    stage.pods.answers["uid-web-1"] = "blocked"

    await stage.run(deadline=1098.0)

    (first, *_) = stage.forced()
    assert 28 <= first[1] <= 29


@pytest.mark.parametrize(("first", "then"), [(5000.0, 1020.0), (1020.0, 5000.0)])
async def test_an_earlier_deadline_counts_and_a_later_one_does_not(stage: Stage, first: float, then: float) -> None:
    """DUR-30, EVT-5, GCR-15: a repair writes a deadline on a claim that is leaving already."""
    stage.holds(a_web_pod(do_not_disrupt="true", grace_seconds=10))

    def write() -> None:
        claim = stage.world.claims["pool-1"]
        stage.world.put(replace(claim, annotations={names.TERMINATION_DEADLINE: format_time(then)}))

    stage.world.at(1003.0, write)

    await stage.run(deadline=first)

    assert stage.world.clock < 1025.0
    informed = {(n.kind, n.message) for n in stage.world.notices if n.reason == "TerminationGracePeriodExpiring"}
    assert informed >= {(kind, "All pods will be deleted by 1970-01-01T00:17:00Z") for kind in ("Node", "NodeClaim")}


async def test_a_deadline_that_cannot_be_read_is_reported_and_stops_nothing(stage: Stage) -> None:
    """TRM-6."""
    claim = stage.world.claims["pool-1"]
    stage.world.put(replace(claim, annotations={names.TERMINATION_DEADLINE: "soon"}))

    assert (await stage.run()).message == "drained"
    assert "InvalidTerminationTimestamp" in stage.world.said()


async def test_an_instance_that_goes_during_the_drain_ends_it(stage: Stage) -> None:
    """TRM-5, BEH-16: the node is silent and the cloud knows of no instance."""
    stage.holds(a_web_pod(do_not_disrupt="true"))
    silent = replace(stage.world.nodes["node-1"], conditions=(Condition(type=names.READY, status="Unknown"),))
    stage.world.at(1030.0, lambda: stage.world.put(silent))
    stage.world.at(1060.0, lambda: stage.world.instances.clear())

    outcome = await stage.run()

    assert outcome == DrainOutcome(message="the instance is gone", instance_gone=True)
    assert 1060.0 <= stage.world.clock <= 1072.0


async def test_the_cloud_is_asked_every_ten_seconds_while_no_kubelet_answers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRM-5: never while the kubelet is Ready, and a cloud that does not answer is no proof of anything."""
    asked: list[float] = []

    async def find(claim_uid: str = "", provider_id: str = "") -> Instance | None:
        asked.append(stage.world.clock)
        raise Unreachable("ec2", "the call never arrived")

    monkeypatch.setattr(stage.cloud, "find", find)
    pod, node = a_web_pod(do_not_disrupt="true"), stage.world.nodes["node-1"]
    stage.holds(pod)
    silent = replace(node, conditions=(Condition(type=names.READY, status="Unknown"),))
    stage.world.at(1030.0, lambda: stage.world.put(silent))
    stage.world.at(1062.0, lambda: stage.world.put(node))
    stage.world.at(1100.0, lambda: stage.world.kill(pod))

    outcome = await stage.run()

    assert (outcome, stage.world.clock >= 1100.0) == (DrainOutcome(message="drained"), True)
    assert asked[0] >= 1030.0 and asked[-1] <= 1063.0
    assert len(asked) == 4 and all(later - earlier >= 10.0 for earlier, later in pairwise(asked))


async def test_a_node_that_is_gone_holds_nothing(stage: Stage) -> None:
    """Its finalizer was taken off by hand."""
    stage.holds(a_web_pod(do_not_disrupt="true"))
    stage.world.at(1030.0, lambda: stage.world.nodes.clear())

    assert (await stage.run()).message == "the node is gone"


@pytest.mark.parametrize(("deadline", "ended"), [(None, 2000.0), (1300.0, 1360.0)])
async def test_a_pod_that_cannot_be_read_holds_its_node_until_the_deadline(
    stage: Stage, deadline: float | None, ended: float
) -> None:
    """It may be one that must not go; a notice on the node says so, and a deadline ends the wait."""
    readable = stage.drain.lookups.pods_on

    def unreadable(node: str) -> tuple[Pod, ...]:
        if stage.world.clock < 2000.0:
            raise NotReadable("Pod/apps/odd", "spec.tolerations: not a list")
        return readable(node)

    stage.drain.lookups.pods_on = unreadable  # type: ignore[method-assign]

    await stage.run(deadline=deadline)

    assert ended <= stage.world.clock <= ended + 2
    assert any("spec.tolerations" in n.message for n in stage.world.notices if n.reason == "FailedDraining")


async def test_an_eviction_under_way_is_finished_when_the_worker_stops(stage: Stage) -> None:
    """The API server may have counted it against the PDB already."""
    began, go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(pod: Pod) -> Eviction:
        began.set()
        await go.wait()
        done.set()
        return Eviction(outcome="evicted", code=201)

    stage.pods.evict = slow  # type: ignore[method-assign]
    stage.holds(a_web_pod())
    drain = asyncio.create_task(stage.run())
    await began.wait()

    drain.cancel()
    for _ in range(20):  # time enough for the cancellation to reach the end of the step
        await asyncio.sleep(0)
    assert not drain.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await drain

    assert done.is_set()
    assert "Evicted" in stage.world.said()


async def test_pools_are_served_one_after_the_other(stage: Stage) -> None:
    """One pool with many callers does not hold up another with one."""
    clock = World()
    pace = EvictionPace(clock.now, clock.pause, per_second=1.0, burst=1.0)
    order: list[str] = []

    async def ask(group: str) -> None:
        await pace.wait(group)
        order.append(group)

    await asyncio.gather(*[ask("big") for _ in range(5)], ask("small"))

    assert order.index("small") <= 1
    assert clock.clock - 1000.0 == pytest.approx(5.0)  # six evictions, the first from the burst


async def test_repeated_requests_get_one_eviction_in_ten_and_what_no_first_request_waits_for(stage: Stage) -> None:
    clock = World()
    pace = EvictionPace(clock.now, clock.pause, per_second=1.0, burst=1.0)
    order: list[str] = []

    async def ask(group: str, again: bool) -> None:
        await pace.wait(group, repeated=again)
        order.append(group)

    await asyncio.gather(*[ask("stuck", True) for _ in range(20)], *[ask("free", False) for _ in range(20)])

    # Served in the moment before the others came: at the first call no other waits.
    assert order.index("free") <= 1
    assert order[:20].count("stuck") <= 3
    assert len(order) == 40


async def test_a_caller_that_gives_up_uses_up_no_eviction(stage: Stage) -> None:
    clock = World()
    pace = EvictionPace(clock.now, clock.pause, per_second=1.0, burst=1.0)
    first, second = asyncio.create_task(pace.wait("a")), asyncio.create_task(pace.wait("a"))
    second.cancel()

    await first
    await asyncio.wait_for(pace.wait("a"), timeout=60)

    assert clock.clock - 1000.0 == pytest.approx(1.0)


def attached(volume: str = "pv-1") -> VolumeAttachment:
    return VolumeAttachment(name=f"attachment-{volume}", node_name="node-1", volume_name=volume)


def conditions(world: World) -> dict[str, tuple[str, str]]:
    wanted = (names.DRAINED, names.VOLUMES_DETACHED)
    return {c.type: (c.status, c.reason) for c in world.claims["pool-1"].conditions if c.type in wanted}


async def test_without_volumes_drained_and_detached_are_written_at_once(stage: Stage) -> None:
    """TRM-18, TRM-32: one request."""
    await stage.detach.await_detached(DEPARTURE)

    assert conditions(stage.world) == {
        "Drained": ("True", "Drained"),
        "VolumesDetached": ("True", "VolumesDetached"),
    }
    assert stage.world.ledger.count("patch status pool-1") == 1


async def test_a_drain_says_itself_that_no_volume_is_attached(stage: Stage) -> None:
    """Decision 274: in one request with its own end."""
    stage.drain.detaching = stage.detach

    assert (await stage.run(is_final=True, tainted=900.0)).detached

    assert conditions(stage.world) == {
        "Drained": ("True", "Drained"),
        "VolumesDetached": ("True", "VolumesDetached"),
    }
    assert stage.world.ledger.count("patch status pool-1") == 1


@pytest.mark.parametrize(("is_final", "volumes"), [(True, ("a",)), (False, ())])
async def test_a_drain_leaves_volumes_that_are_attached_to_the_next_step(
    stage: Stage, is_final: bool, volumes: tuple[str, ...]
) -> None:
    """And all of them where the drain comes before the delete."""
    stage.drain.detaching = stage.detach
    stage.world.attachments = {name: attached() for name in volumes}

    assert not (await stage.run(is_final=is_final, tainted=900.0)).detached

    assert conditions(stage.world) == {"Drained": ("Unknown", "Draining")}


async def test_an_attached_volume_is_waited_for(stage: Stage) -> None:
    """TRM-33, BEH-25, EVT-4."""
    stage.world.attachments["a"] = attached()
    seen: list[dict[str, tuple[str, str]]] = []
    stage.world.at(1020.0, lambda: seen.append(conditions(stage.world)))
    stage.world.at(1030.0, lambda: stage.world.attachments.clear())

    await stage.detach.await_detached(DEPARTURE)

    assert seen == [{"Drained": ("True", "Drained"), "VolumesDetached": ("Unknown", "AwaitingVolumeDetachment")}]
    assert conditions(stage.world)["VolumesDetached"] == ("True", "VolumesDetached")
    assert "AwaitingVolumeDetachment" in stage.world.said()


async def test_the_deadline_ends_the_wait_for_volumes(stage: Stage) -> None:
    """TRM-34, BEH-27."""
    stage.world.attachments["a"] = attached()

    stage.says(deadline=1100.0)

    outcome = await stage.detach.await_detached(DEPARTURE)

    assert "attachment-pv-1" in outcome.message
    assert 1100.0 < stage.world.clock < 1102.0
    assert conditions(stage.world)["VolumesDetached"] == ("False", "TerminationGracePeriodElapsed")


async def test_the_volume_of_a_pod_that_stays_is_not_waited_for(stage: Stage) -> None:
    """TRM-31: the pod tolerates the taint, so nobody will detach it."""
    with_a_pod_that_stays(stage, "apps", bound_to={"namespace": "apps", "name": "data", "uid": "uid-of-apps"})

    outcome = await stage.detach.await_detached(DEPARTURE)

    assert (outcome.message, stage.world.clock) == ("volumes are off", START)


@pytest.mark.parametrize(
    "bound_to",
    [
        {"namespace": "apps", "name": "data", "uid": "uid-of-apps"},
        {"namespace": "neighbour", "name": "data", "uid": "uid-of-an-earlier-one"},
        {"namespace": "neighbour", "name": "data"},
        {},
        None,
    ],
)
async def test_a_volume_that_a_claim_names_which_it_is_not_bound_to_is_waited_for(
    stage: Stage, bound_to: dict[str, str] | None
) -> None:
    """TRM-31: anybody may name any volume in a claim. The last one: the volume is not known."""
    with_a_pod_that_stays(stage, "neighbour", bound_to)
    off = START + 60.0
    stage.world.at(off, stage.world.attachments.clear)

    outcome = await stage.detach.await_detached(DEPARTURE)

    assert outcome.message == "volumes are off" and stage.world.clock >= off


def with_a_pod_that_stays(stage: Stage, namespace: str, bound_to: dict[str, str] | None) -> None:
    """Its claim names the volume that is attached, as the API server takes it from anybody."""
    used = (VolumeUse(claim_name="data"),)
    stage.holds(a_web_pod("agent", namespace=namespace, tolerations=(EVERYTHING,), volumes=used))
    said = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"name": "data", "namespace": namespace, "uid": f"uid-of-{namespace}", "annotations": said}
    claim = parse_volume_claim({"metadata": metadata, "spec": {"volumeName": "pv-1"}})
    stage.world.volume_claims[f"{namespace}/data"] = claim
    if bound_to is not None:
        spec = {"claimRef": bound_to} if bound_to else {}
        stage.world.volumes["pv-1"] = parse_volume({"metadata": {"name": "pv-1"}, "spec": spec})
    stage.world.attachments["a"] = attached("pv-1")


async def test_a_node_that_is_gone_holds_no_volumes(stage: Stage) -> None:
    stage.world.attachments["a"] = attached()
    stage.world.nodes.clear()

    assert (await stage.detach.await_detached(DEPARTURE)).message == "volumes are off"


async def test_the_pods_of_another_node_of_the_same_name_stay(stage: Stage) -> None:
    """Its finalizer was taken off by hand in mid-drain, and a new instance has been given the same address."""
    stage.holds(a_web_pod("old"))
    stage.pods.answers["uid-old"] = "blocked"

    def replaced() -> None:
        stage.world.kill(a_web_pod("old"))
        stage.world.put(a_joined_node(uid="uid-of-another"), a_web_pod("new"))

    stage.world.at(START + 8.0, replaced)

    outcome = await stage.run()

    assert outcome.message == "the node is gone"
    assert set(stage.evictions()) == {"old"}


async def test_no_volume_of_another_node_of_the_same_name_is_waited_for(stage: Stage) -> None:
    stage.world.put(a_joined_node(uid="uid-of-another"))
    stage.world.attachments["va"] = attached()

    outcome = await stage.detach.await_detached(DEPARTURE)

    assert outcome.message == "volumes are off"


async def test_the_pods_of_another_node_that_the_cache_does_not_know_yet_stay(stage: Stage) -> None:
    known, other = a_joined_node(deleting_since=START), a_joined_node(uid="uid-of-another")
    stage.world.put(other)
    stage.holds(a_web_pod("new"))
    stage.world.hidden.add("new")
    stage.drain.lookups.node = lambda name: known  # type: ignore[method-assign]  # the cache lags

    outcome = await stage.run()

    assert (outcome.message, stage.evictions()) == ("drained", [])


class Paused:
    """The port of pauses, with drains paused until a moment."""

    def __init__(self, stage: Stage, until: float) -> None:
        self.stage, self.until = stage, until

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        if activity != Activity.DRAINS or self.stage.world.clock >= self.until:
            return None
        return Pause(pool=pool, what=frozenset({Activity.DRAINS}), reason="look first")


def paused(stage: Stage, until: float) -> Stage:
    stage.drain.pauses = Paused(stage, until)
    return stage


async def test_no_further_pod_is_asked_to_leave_while_drains_are_paused(stage: Stage) -> None:
    """What was asked before goes on to leave; at the end of the pause the rest follows."""
    stage.holds(a_web_pod("one"))
    moments: list[float] = []
    evict = stage.pods.evict

    async def noted(pod: Pod) -> Eviction:
        moments.append(stage.world.clock)
        return await evict(pod)

    stage.pods.evict = noted  # type: ignore[method-assign]

    outcome = await paused(stage, START + 100.0).run()

    assert outcome.message == "drained"
    assert moments and START + 100.0 <= moments[0] <= START + 110.0
    assert stage.evictions() == ["one"]


async def test_no_pod_of_a_node_that_is_not_ready_is_asked_to_leave_while_drains_are_paused(stage: Stage) -> None:
    """A disruption began the drain; that its node has become silent meanwhile ends no pause."""
    stage.holds(a_web_pod("one"))
    node = stage.world.nodes["node-1"]
    silent = [replace(each, status="Unknown") if each.type == names.READY else each for each in node.conditions]
    stage.world.put(replace(node, conditions=tuple(silent)))

    outcome = await paused(stage, START + 100.0).run()

    assert outcome.message == "drained" and stage.evictions() == ["one"]
    assert START + 100.0 <= stage.world.clock <= START + 130.0


@pytest.mark.parametrize("fields", [{"reason": FORCEFUL}, {"reason": "Drifted"}])
async def test_a_pause_holds_up_no_drain_that_nobody_chose(stage: Stage, fields: dict[str, str]) -> None:
    """A person deleted it, or the cloud takes the instance: that does not wait."""
    stage.holds(a_web_pod("one"))
    if fields["reason"] != FORCEFUL:
        claim = stage.world.claims["pool-1"]
        stage.world.put(replace(claim, annotations={names.INTERRUPTED: "1970-01-01T00:16:40Z"}))

    await paused(stage, START + 10_000.0).run(reason=fields["reason"])

    assert stage.evictions() == ["one"] and stage.world.clock < START + 100.0


async def test_a_deadline_stands_whatever_is_paused(stage: Stage) -> None:
    stage.holds(a_web_pod("one", grace_seconds=10))

    outcome = await paused(stage, START + 10_000.0).run(deadline=START + 60.0)

    assert outcome.message == "drained"
    assert stage.evictions() == []
    [(name, grace)] = stage.forced()
    assert name == "one" and 0 < grace <= 10 and stage.world.clock < START + 90.0
