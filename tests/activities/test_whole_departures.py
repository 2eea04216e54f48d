"""Whole departures, many nodes, many pods: the examples of behaviour (BEH-rules) that no other test shows."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from dovetail.messages.subjects import Departure
from dovetail.model import names
from dovetail.model.nodes import Condition
from dovetail.ports.failures import Unreachable
from tests.activities import test_departing, test_draining
from tests.activities.test_draining import DEPARTURE
from tests.lifecycle.objects import a_joined_claim, a_joined_node, a_web_pod


@pytest.fixture
def draining() -> test_draining.Stage:
    return test_draining.new_stage()


@pytest.fixture
def departing() -> test_departing.Stage:
    return test_departing.new_stage()


def drained(stage: test_draining.Stage) -> Condition | None:
    return stage.world.claims["pool-1"].condition(names.DRAINED)


async def test_a_departure_taints_then_drains_then_terminates_then_lets_go(departing: test_departing.Stage) -> None:
    """BEH-1, BEH-7: the taint and the load balancer's label stand before anything else; the finalizers go last."""
    world = departing.world
    world.put(test_departing.a_leaving_claim(), a_joined_node())

    departure = await departing.begin()
    tainted = world.nodes["node-1"]
    await departing.terminating.terminate_instance(departure)
    await departing.departing.release_claim(departure)

    assert any(taint.key == names.DISRUPTED_TAINT for taint in tainted.taints)
    assert tainted.labels["node.kubernetes.io/exclude-from-external-load-balancers"] == "karpenter"
    first = {what: next(n for n, line in enumerate(world.ledger) if line.startswith(what)) for what in _ORDER}
    assert sorted(first, key=first.__getitem__) == list(_ORDER)
    assert (world.claims, world.nodes, world.instances) == ({}, {}, {})


_ORDER = ("patch node", "delete node", "terminate aws")


async def test_ten_nodes_of_one_instance_leave_together(departing: test_departing.Stage) -> None:
    """BEH-6, BEH-71: nothing races, nothing is left."""
    world = departing.world
    world.put(test_departing.a_leaving_claim(), *[a_joined_node(f"node-{n}", uid=f"n-{n}") for n in range(10)])

    departure = await departing.begin()
    await departing.terminating.terminate_instance(departure)
    await asyncio.gather(*[departing.departing.release_claim(departure) for _ in range(3)])

    assert len(departure.nodes) == 10
    assert (world.claims, world.nodes) == ({}, {})


async def test_drained_is_written_when_the_last_pod_has_gone(draining: test_draining.Stage) -> None:
    """BEH-15: Unknown with the reason Draining until both are gone."""
    one, two = a_web_pod("one", do_not_disrupt="true"), a_web_pod("two", do_not_disrupt="true")
    draining.holds(one, two)
    states: list[str] = []
    draining.world.at(1010.0, lambda: draining.world.kill(one))
    draining.world.at(1019.0, lambda: states.append(_status(drained(draining))))
    draining.world.at(1020.0, lambda: draining.world.kill(two))

    await draining.run()
    ended = draining.world.clock
    await draining.detach.await_detached(DEPARTURE)

    assert (states, ended >= 1020.0, _status(drained(draining))) == (["Unknown"], True, "True")


def _status(condition: Condition | None) -> str:
    return "" if condition is None else condition.status


async def test_a_pod_that_waits_without_a_deadline_is_forced_when_one_is_written(draining: test_draining.Stage) -> None:
    """BEH-35: asked for politely at first, then the claim gets a deadline that its grace does not fit into."""
    pod = a_web_pod(grace_seconds=30)
    draining.holds(pod)
    draining.pods.answers[pod.uid] = "blocked"
    claim = draining.world.claims["pool-1"]
    hurried = replace(claim, annotations={names.TERMINATION_DEADLINE: "1970-01-01T00:17:10Z"})  # 1030
    draining.world.at(1008.0, lambda: draining.world.put(hurried))

    await draining.run()

    [(name, grace)] = draining.forced()
    assert (name, 1 <= grace <= 22) == (pod.name, True)


async def test_a_thousand_pods_of_one_node_are_each_evicted_once(draining: test_draining.Stage) -> None:
    """BEH-32: side by side, no pod twice and none forgotten."""
    draining.pods.lasts = 0.5
    draining.holds(*[a_web_pod(f"pod-{number}") for number in range(1000)])
    began = draining.world.clock

    await draining.run()

    counts = Counter(draining.evictions())
    assert (len(counts), max(counts.values()), draining.world.pods) == (1000, 1, {})
    assert draining.world.clock - began < 10


async def test_a_cloud_that_fails_keeps_the_finalizer(departing: test_departing.Stage) -> None:
    """BEH-70: an error of the call, then an instance that lingers; nothing is let go meanwhile."""
    world = departing.world
    world.put(test_departing.a_leaving_claim(), a_joined_node())
    departure: Departure = await departing.begin()

    async def fail(provider_id: str, claim: str) -> str:
        raise Unreachable("ec2", "the call never arrived")

    departing.cloud.terminate = fail  # type: ignore[assignment,method-assign]
    with pytest.raises(Unreachable):
        await departing.terminating.terminate_instance(departure)

    assert world.claims["pool-1"].finalizers == (names.TERMINATION_FINALIZER,)
    assert world.claims["pool-1"].condition(names.INSTANCE_TERMINATING) is None


async def test_unrelated_nodes_without_an_instance_survive_a_claim_that_never_launched(
    departing: test_departing.Stage,
) -> None:
    """BEH-72: an empty providerID matches nothing."""
    world = departing.world
    world.instances = {}
    world.put(a_joined_claim(provider_id="", conditions=(), deleting_since=1000.0), a_joined_node(provider_id=""))

    departure = await departing.begin()
    await departing.terminating.terminate_instance(departure)
    await departing.departing.release_claim(departure)

    assert (world.claims, list(world.nodes)) == ({}, ["node-1"])
    assert world.nodes["node-1"].deleting_since is None
