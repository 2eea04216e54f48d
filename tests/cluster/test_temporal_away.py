"""Temporal is away on real servers, and AWS warns of a spot instance meanwhile.

The server is stopped where it stands (its connections stay open and nothing answers), then killed, and starts again
with its database. What is asserted stands in the API server's audit log and in the cloud's ledger. The five minutes are
part of `make soak`; `make test` plays the same in one.
"""

import asyncio
import signal
import time
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from tests.cluster.system.scenes import gone
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id, deployment, has_condition, is_tainted, node_pool

pytestmark = pytest.mark.cluster

WARNED_SECONDS = 120.0  # from AWS's warning to the end of a spot instance
HEALED_SECONDS = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds: how long Temporal stands still, when the warning comes, and how long it is gone altogether."""

    stopped: float
    warned: float
    killed: float


def spot_pool() -> Json:
    found = node_pool()
    requirements = found["spec"]["template"]["spec"]["requirements"]
    requirements[0] = {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot"]}
    return found


def moment(entry: AuditEntry) -> float:
    return datetime.fromisoformat(entry.time).timestamp()


async def pods_on(ground: Ground, node: str) -> list[str]:
    """The pods of the Deployment that run there and are not leaving."""
    pods = [p for p in await ground.objects("Pod") if p["spec"].get("nodeName") == node]
    return [p["metadata"]["name"] for p in pods if "deletionTimestamp" not in p["metadata"]]


async def off(ground: Ground, node: str) -> bool:
    return not [p for p in await ground.objects("Pod") if p["spec"].get("nodeName") == node]


async def an_absence_with_a_warning(ground: Ground, times: Times) -> None:
    """Two nodes run pods; one of them is warned of while nothing answers."""
    await ground.apply(spot_pool())
    await ground.apply(deployment(2, "3"))
    await ground.until(lambda: ground.settled(2), 120, "two pods run on nodes of their own")
    struck, spared = await ground.claims()
    node = struck["status"]["nodeName"]
    since = ground.audit.end()

    ground.signal_temporal(signal.SIGSTOP)
    left = time.monotonic()
    await asyncio.sleep(times.warned)
    warned = time.time()
    await ground.warn(struck)
    await ground.until(partial(off, ground, node), WARNED_SECONDS, "no pod is left on the node")
    assert time.time() - warned < WARNED_SECONDS
    await asyncio.sleep(max(0.0, times.stopped - (time.monotonic() - left)))
    ground.signal_temporal(signal.SIGKILL)
    await asyncio.sleep(times.killed)
    await nothing_else_was_done(ground, since, struck, spared)

    await ground.start_temporal_again()
    identity = claim_id(struck)
    await ground.until(partial(gone, ground, struck), HEALED_SECONDS, "its claim is released")
    await ground.until(lambda: ground.settled(2), HEALED_SECONDS, "both pods run again")
    assert await ground.result(identity, "") == "terminated", "its workflow took over"
    assert (await ground.run_of(identity))[1:] == ("TerminateNode", "COMPLETED")
    [ended] = await ground.instances_of(struck["metadata"]["uid"])
    assert ended["state"] == "terminated"
    evicted = [e for e in evictions(ground, since) if e.code == 201]
    assert len({e.name for e in evicted}) == len(evicted) == 1, "one pod was evicted, and once"
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()
    await ground.assert_events_are_named()


def evictions(ground: Ground, since: int) -> list[AuditEntry]:
    return [e for e in ground.worker_calls(since) if e.subresource == "eviction"]


async def nothing_else_was_done(ground: Ground, since: int, struck: Json, spared: Json) -> None:
    """The node is tainted and leaving, its claim deleted and standing, the instance lives, the other is untouched."""
    claim, node = await ground.claim(struck["metadata"]["name"]), await ground.node(struck["status"]["nodeName"])
    assert claim is not None and "deletionTimestamp" in claim["metadata"], "the deletion holds what is to be done"
    assert node is not None and is_tainted(node)
    tainted = min(moment(e) for e in ground.worker_calls(since) if _taints(e))
    assert tainted < min(moment(e) for e in evictions(ground, since)), "tainted before the first eviction"
    assert struck["status"]["providerID"].rpartition("/")[2] in await ground.live()
    other = await ground.node(spared["status"]["nodeName"])
    assert other is not None and not is_tainted(other)
    assert await pods_on(ground, spared["status"]["nodeName"])
    assert len(await ground.claims()) == 2, "no node is launched without Temporal"
    assert has_condition(claim, names.INITIALIZED_CONDITION)


def _taints(entry: AuditEntry) -> bool:
    return entry.resource == "nodes" and entry.is_write and names.DISRUPTED_TAINT in str(entry.operations)


@pytest.mark.soak
async def test_a_spot_warning_is_answered_while_temporal_is_away_for_a_minute(ground: Ground) -> None:
    """AWS-127, AWS-130: the pods are off in time, and the workflow finds what was done."""
    await an_absence_with_a_warning(ground, Times(stopped=45.0, warned=5.0, killed=15.0))


@pytest.mark.soak
async def test_a_spot_warning_is_answered_while_temporal_is_away_for_five_minutes(ground: Ground) -> None:
    await an_absence_with_a_warning(ground, Times(stopped=210.0, warned=90.0, killed=90.0))
