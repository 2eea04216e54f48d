"""What the guides promise of a node that leaves, or must not leave yet: windows, Freezes, hooks and the ladder. The
scenes are played beside each other; the Freeze is for all NodePools, and those of the others are being deleted, which
no Freeze holds."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from tests.cluster.flagships.corner import Corner, of_guide
from tests.cluster.flagships.wave import scene
from worlds.cluster.costs import start_worker
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition, is_tainted, owner_of
from worlds.cluster.timeline import Timeline

pytestmark = pytest.mark.cluster

RULES: Final = "disruption-rules.md"
DRAINS: Final = "blocked-drains.md"
BERLIN: Final = ZoneInfo("Europe/Berlin")
NOMINATED: Final = 30.0  # seconds, for which a node whose pod has just come is no candidate anyway
HOOKED: Final = {"pre-drain.hook.dovetail.sh/mesh": "mesh-team"}


@asynccontextmanager
async def setting(ground: Ground) -> AsyncIterator[None]:
    start_worker(ground, BATCH_MAX_DURATION="5s")  # nominations last half as long
    try:
        yield
    finally:
        ground.ensure_workers(0)


async def one_node(corner: Corner, **changes: Any) -> Json:
    """With a pod. Its NodeClaim."""
    await corner.apply(corner.pool(**changes), corner.workload(1, terminationGracePeriodSeconds=7))
    await corner.settle(1, 1)
    [claim] = await corner.claims()
    return claim


@scene
async def test_a_window_opens_by_the_clock_and_a_freeze_calls_off_what_has_begun(corner: Corner) -> None:
    """The policy `production` and the Freeze `peak-season` of the guide; a hook keeps the node between its mark and its
    delete, since it is drained first."""
    drain_first: Json = {"annotations": {names.DRAIN_FIRST: "true"}}
    claim = await one_node(corner, **drain_first)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    await corner.kubectl("annotate", "nodeclaim", name, *[f"{key}={value}" for key, value in HOOKED.items()])
    opens = datetime.fromtimestamp(time.time() + NOMINATED + 59, BERLIN).replace(second=0, microsecond=0)
    closes = opens + timedelta(hours=12)
    window = {"from": f"{opens:%H:%M}", "to": f"{closes:%H:%M}", "reasons": ["Drifted", "Expired"]}
    production = of_guide(RULES, "DisruptionPolicy", "production")
    await corner.apply(corner.rule(production, allow=[window], deny=[]))
    await corner.until(lambda: ready(corner), 60, "the policy is understood")
    await corner.apply(corner.pool("green", **drain_first))

    async def live() -> Json:
        found = await corner.claim(name)
        assert found is not None and "deletionTimestamp" not in found["metadata"], "it is deleted"
        return found

    async def drifted() -> bool:
        return has_condition(await live(), names.DRIFTED)

    async def marked() -> bool:
        return bool(owner_of(await live()))

    async def as_before() -> bool:
        found = await corner.ground.node(node)
        return not owner_of(await live()) and found is not None and not is_tainted(found)

    await corner.until(drifted, 60, "it has drifted")
    await corner.says(f"by DisruptionPolicy {corner.name}: ", "explain", "node", node)
    await corner.until(marked, 180, "it is marked once the window is open")
    await corner.until(lambda: shown_marked(corner, name), 10, "the audit log has the mark")
    assert Timeline(corner.calls()).marked()[name] >= opens.timestamp()

    peak = of_guide(RULES, "Freeze", "peak-season")
    now = time.time()
    spec = {**peak["spec"], "from": format_time(now), "until": format_time(now + 3600)}
    await corner.apply({**peak, "metadata": {"name": corner.name}, "spec": spec})
    await corner.until(as_before, 60, "its disruption is called off, and the node is as it was")
    assert not corner.evictions() and len(await corner.pods()) == 1
    await corner.says("peak season", "explain", "node", node)
    assert has_condition(await corner.object("freeze"), "Active")


async def ready(corner: Corner) -> bool:
    return (await corner.condition("disruptionpolicy", "Ready")).get("status") == "True"


async def shown_marked(corner: Corner, name: str) -> bool:
    return name in Timeline(corner.calls()).marked()


@scene
async def test_a_hook_holds_until_it_answers_first_the_pods_and_then_the_instance(corner: Corner) -> None:
    """Both hooks of the guide."""
    claim = await one_node(corner)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    hooks = ("pre-drain.hook.dovetail.sh/mesh=mesh-team", "pre-terminate.hook.dovetail.sh/backup=backup-team")
    await corner.kubectl("annotate", "nodeclaim", name, *hooks)
    await corner.kubectl("delete", "nodeclaim", name, "--wait=false")
    await corner.says("hook mesh (mesh-team)", "explain", "node", node)
    [pod] = await corner.pods()
    assert pod["spec"]["nodeName"] == node and not corner.evictions()

    await corner.kubectl("annotate", "nodeclaim", name, "pre-drain.hook.dovetail.sh/mesh-")
    await corner.until(partial(moved_from, corner, node), 90, "its pod runs elsewhere")
    await corner.says("hook backup (backup-team)", "explain", "node", node)
    identity = claim["status"]["providerID"].rpartition("/")[2]
    assert identity in await corner.running("id")
    assert await corner.claim(name) is not None

    await corner.kubectl("annotate", "nodeclaim", name, "pre-terminate.hook.dovetail.sh/backup-")
    await corner.until(partial(is_gone, corner, name), 60, "it has gone")
    assert identity not in await corner.running("id")


async def moved_from(corner: Corner, node: str) -> bool:
    return all(
        pod["spec"].get("nodeName", node) != node and pod["status"]["phase"] == "Running" for pod in await corner.pods()
    )


async def is_gone(corner: Corner, name: str) -> bool:
    return await corner.claim(name) is None


@scene
async def test_a_drain_that_is_held_is_told_asks_and_is_forced(corner: Corner) -> None:
    """The ladder `held-drains` of the guide, its times shortened: nothing is said before a minute."""
    ladder = of_guide(DRAINS, "DisruptionPolicy", "held-drains")
    steps = ladder["spec"]["drain"]["escalation"]
    for step, after in zip(steps, ("1m", "65s", "90s"), strict=True):
        step["after"] = after
    steps[-1].pop("reasons")  # a person deletes it, which is none of them
    await corner.apply(corner.rule(ladder))
    claim = await one_node(corner)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": corner.name},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    await corner.apply(budget)
    await corner.kubectl("delete", "nodeclaim", name, "--wait=false")

    async def asks() -> bool:
        code, said = await corner.asked("status", "--check")
        return code == 4 and f"dovetail decide {node}" in said

    await corner.until(asks, 180, "status says that a person is asked, and what to type")
    assert [pod["spec"]["nodeName"] for pod in await corner.pods()] == [node]
    await corner.until(partial(is_gone, corner, name), 120, "it is forced, and gone")
    said = {reason: await corner.ground.api.get(f"/api/v1/events?fieldSelector=reason={reason}") for reason in TOLD}
    times = [
        min(e["firstTimestamp"] for e in answer.body["items"] if e["involvedObject"]["name"] == node)
        for answer in said.values()
    ]
    assert times == sorted(times), "told, asked and forced in this order"
    deleted = [e for e in corner.calls() if (e.resource, e.verb, e.namespace) == ("pods", "delete", corner.name)]
    assert [(e.request or {}).get("gracePeriodSeconds") for e in deleted if not e.subresource] == [7]
    assert not corner.evictions()
    await corner.settle(1, 1)


TOLD: Final = ("DrainHeld", "DrainAsks", "DrainForced")
