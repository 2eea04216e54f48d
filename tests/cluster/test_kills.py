"""The worker is killed with -9 on real servers, again and again, at the three moments that could cost most.

Between the cloud's answer to a launch and its record, after the taint and before the delete, in mid-drain: several
nodes stand at that moment when the kill comes, and in half of the tests Temporal's database goes with the worker. Soak
only: `make soak` prints how long the next step took. One kill of each kind is part of `make test` (test_system.py).
"""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cluster.system.scenes import NEVER, boot, gone, settle
from tests.next_steps import in_words, report
from worlds.cluster.ground import Ground
from worlds.cluster.objects import claim_id, deployment, has_condition, is_tainted, no_eviction, node_pool, owner_of

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


AT_ONCE = 5
ROUNDS = 4
LAUNCH_ROUNDS = 10  # fifty launches, because here a mistake is a bill
HEALED_SECONDS = 240.0  # with the database lost it is the sweep that finds what is half done

Strike = Callable[[Ground], Awaitable[list[Json]]]


async def launches(ground: Ground) -> list[Json]:
    """Every instance is launched and no answer is recorded."""
    await ground.until(ground.class_is_ready, 60, "the class is validated, by calls of CreateFleet too")
    ground.world({"fail": [{"op": "CreateFleet", "answer": "late", "delay": 60, "times": AT_ONCE}]})
    before = {i["id"] for i in await ground.instances()}
    await ground.apply(node_pool())
    await ground.apply(deployment(AT_ONCE, "3"))

    async def launched() -> bool:
        return len({i["id"] for i in await ground.instances()} - before) >= AT_ONCE

    await ground.until(launched, 90, "the instances are launched")
    return await ground.claims()


async def marks(ground: Ground) -> list[Json]:
    """Drifted nodes are tainted, their replacements are launched and do not boot."""
    drifted = await settle(ground, AT_ONCE, "3")
    ground.world({"bootSeconds": NEVER})
    await ground.apply(node_pool(colour="green"))
    nodes = {c["status"]["nodeName"] for c in drifted}

    async def wait() -> bool:
        claims = await ground.claims()
        launched = [c for c in claims if not owner_of(c) and has_condition(c, names.LAUNCHED)]
        tainted = {n["metadata"]["name"] for n in await ground.nodes() if is_tainted(n)}
        return tainted == nodes and len(launched) == AT_ONCE

    await ground.until(wait, 120, "drifted nodes are tainted, replacements launched")
    return drifted


async def drains(ground: Ground) -> list[Json]:
    """NodeClaims are deleted and a PodDisruptionBudget refuses every eviction."""
    claims = await settle(ground, AT_ONCE, "3")
    await ground.apply(no_eviction())
    since = ground.audit.end()
    for claim in claims:
        await ground.delete("NodeClaim", claim["metadata"]["name"])

    async def refused() -> bool:
        calls = ground.worker_calls(since)
        return len({e.name for e in calls if e.subresource == "eviction" and e.code == 429}) == AT_ONCE

    await ground.until(refused, 90, "evictions are refused")
    return claims


async def go_on(ground: Ground, struck: list[Json]) -> None:
    """What held them at that moment is taken away."""
    ground.world({"bootSeconds": 0})
    await ground.delete("PodDisruptionBudget", "web")
    for claim in await ground.claims():
        if claim["metadata"]["uid"] not in {c["metadata"]["uid"] for c in struck} and "providerID" in claim["status"]:
            boot(ground, claim)


async def next_steps(ground: Ground, struck: list[Json], since: int, killed: float) -> dict[str, float]:
    """From the kill to the worker's next write that concerns a claim, its node or its pods' eviction; by claim."""
    found: dict[str, float] = {}
    writes = [e for e in ground.worker_calls(since) if e.is_write]
    for claim in struck:
        known = {claim["metadata"]["name"], claim.get("status", {}).get("nodeName")}
        moments = [moment(e.time) for e in writes if e.name in known or e.subresource == "eviction"]
        found[claim["metadata"]["name"]] = min(moments, default=float("inf")) - killed
    return found


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def struck_once(ground: Ground, strike: Strike, lose_database: bool) -> dict[str, float]:
    """One kill and what follows; the seconds to the next step, by claim."""
    struck = await strike(ground)
    runs = {claim_id(c): (await ground.run_of(claim_id(c)))[0] for c in struck}
    since, killed = ground.audit.end(), time.time()
    ground.kill_workers()
    if strike is launches:
        assert not [c for c in await ground.claims() if "providerID" in c.get("status", {})], "recorded before the kill"
    await go_on(ground, struck)
    if lose_database:
        await ground.lose_database()
    ground.ensure_workers()
    if strike is not launches:
        for claim in struck:
            await ground.until(partial(gone, ground, claim), HEALED_SECONDS, "what was struck is gone")
    await ground.until(partial(ground.settled, AT_ONCE), HEALED_SECONDS, "the pods run")
    if not lose_database:
        for identity, run in runs.items():
            await ground.result(identity, run)
    await ground.assert_one_instance_per_claim()

    async def tidy() -> bool:
        live = {i["tags"].get(names.CLAIM_UID_TAG) for i in await ground.instances() if i["state"] != "terminated"}
        claims = await ground.claims()
        return live == {c["metadata"]["uid"] for c in claims} and not [n for n in await ground.nodes() if is_tainted(n)]

    await ground.until(tidy, HEALED_SECONDS, "nothing is tainted or leaked")
    steps = await next_steps(ground, struck, since, killed)
    await ground.clear()
    return steps


@pytest.mark.parametrize("lose_database", [False, True], ids=["killed", "database-lost"])
@pytest.mark.parametrize(
    ("strike", "rounds"),
    [(launches, LAUNCH_ROUNDS), (marks, ROUNDS), (drains, ROUNDS)],
    ids=["between-answer-and-record", "between-taint-and-delete", "in-mid-drain"],
)
async def test_a_killed_worker_costs_nothing_on_real_servers(
    ground: Ground, strike: Strike, rounds: int, lose_database: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[float] = []
    for _ in range(rounds):
        steps += (await struck_once(ground, strike, lose_database)).values()

    report(capsys, in_words(f"{strike.__name__}{', database lost' if lose_database else ''}", steps))
    assert len(steps) == rounds * AT_ONCE
    assert max(steps) < HEALED_SECONDS
