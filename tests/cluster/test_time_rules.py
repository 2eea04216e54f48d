"""A window and a Freeze on the real API server, by kubectl's writes alone; the worker has the shipped rights."""

import asyncio
import random
import time
from typing import Any, Final

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time, parse_time
from testbed.plane import AuditEntry
from tests.cluster.test_pauses import SYSTEM, annotate
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, has_condition, is_tainted, node_pool, owner_of

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

KINDS = {"DisruptionPolicy": "disruptionpolicies", "Freeze": "freezes", "NodeRollout": "noderollouts"}
ALL_DAY = {"from": "00:00", "to": "00:00", "reasons": ["Drifted"]}


def a_rule(kind: str, name: str, **spec: Any) -> Json:
    return {"apiVersion": "dovetail.sh/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def path(kind: str, name: str = "") -> str:
    return f"/apis/dovetail.sh/v1alpha1/{KINDS[kind]}" + (f"/{name}" if name else "")


async def create(ground: Ground, rule: Json) -> None:
    answer = await ground.api.post(path(rule["kind"]), rule)
    assert answer.status == 201, answer.text


async def test_a_window_holds_and_opens_and_a_freeze_calls_off_what_has_begun(ground: Ground) -> None:
    def pool_of(colour: str) -> Json:
        pool = node_pool(colour, consolidate_after="Never")
        pool["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
        return pool

    await ground.apply(pool_of("blue"))
    await ground.apply(deployment(1, cpu="3"))
    try:
        await ground.until(lambda: ground.settled(1), 120, "the pod runs")
        [claim] = await ground.claims()
        name = claim["metadata"]["name"]
        await annotate(ground, SYSTEM, paused="drains")  # so that it stays between its mark and its delete
        await create(ground, a_rule("DisruptionPolicy", "nights", timeZone="Europe/Berlin", deny=[ALL_DAY]))
        await ground.apply(pool_of("green"))

        async def live() -> Json:
            found = await ground.claim(name)
            assert found is not None and "deletionTimestamp" not in found["metadata"], "it was deleted"
            return found

        async def drifted() -> bool:
            return has_condition(await live(), names.DRIFTED)

        async def marked() -> bool:
            return bool(owner_of(await live()))

        async def as_before() -> bool:
            node = await ground.node(claim["status"]["nodeName"])
            return not owner_of(await live()) and node is not None and not is_tainted(node)

        await ground.until(drifted, 60, "it has drifted")
        _, words = await ground.dovetail("explain", "node", claim["status"]["nodeName"])
        assert "by DisruptionPolicy nights: in deny[0]" in " ".join(words.split())
        assert not await marked()

        answer = await ground.api.patch(
            path("DisruptionPolicy", "nights"), {"spec": {"deny": None, "rates": [{"nodes": "1", "per": "1h"}]}}
        )
        assert answer.status == 200, answer.text
        await ground.until(marked, 120, "the drifted node is marked when the window opens")
        end = format_time(time.time() + 3600.0)
        began = time.monotonic()
        await create(ground, a_rule("Freeze", "peak", until=end, inFlight="Undo", reason="peak season"))
        await ground.until(as_before, 60, "its disruption is called off, and the node is as it was")
        print(f"as it was {time.monotonic() - began:.1f} s after the Freeze")

        [policy] = (await ground.api.get(path("DisruptionPolicy"))).body["items"]
        [freeze] = (await ground.api.get(path("Freeze"))).body["items"]
        assert has_condition(policy, "Ready") and has_condition(freeze, "Active")
        _, words = await ground.dovetail("explain", "node", claim["status"]["nodeName"])
        assert "by Freeze peak: peak season" in " ".join(words.split())
    finally:
        await annotate(ground, SYSTEM, paused=None)
        await ground.api.delete(path("DisruptionPolicy", "nights"))
        await ground.api.delete(path("Freeze", "peak"))


def a_freeze(name: str, **spec: Any) -> Json:
    return a_rule("Freeze", name, until=format_time(time.time() + 3600.0), reason="peak season", **spec)


def marks_in(entries: list[AuditEntry]) -> list[tuple[float, str]]:
    """When each claim got an owner."""
    found = []
    for entry in entries:
        annotations = ((entry.request or {}).get("metadata") or {}).get("annotations") or {}
        if (
            entry.resource == "nodeclaims"
            and entry.verb == "patch"
            and entry.code == 200
            and annotations.get(names.OWNER)
        ):
            found.append((parse_time(entry.time), entry.name))
    return found


TRIES: Final = 100
MARKED_BY: Final = 1.0  # seconds for which an answer of the API server about rules holds
DRIFTING: Final = 3


async def test_what_is_marked_more_than_a_second_after_a_freeze_is_nothing_in_a_hundred_tries(ground: Ground) -> None:
    """Nodes drift, are marked and replaced; a Freeze begins at any moment of that, and nothing is marked any more."""
    pool = node_pool("c0", consolidate_after="Never")
    await ground.apply(pool)
    await ground.apply(deployment(DRIFTING, cpu="3"))
    await ground.until(lambda: ground.settled(DRIFTING), 120, "the pods run")
    chance, before, held = random.Random(1), 0, 0
    for number in range(TRIES):
        since = ground.audit.end()
        await ground.apply(node_pool(f"c{number + 1}", consolidate_after="Never"))

        async def any_marked(since: int = since) -> bool:
            return bool(marks_in(ground.audit.entries(since)))

        if number % 2:
            await ground.until(any_marked, 120, f"nodes are marked in try {number}")
        await asyncio.sleep(chance.uniform(0, 1.5))
        await create(ground, a_freeze("peak"))
        begun = time.time()
        try:
            await asyncio.sleep(MARKED_BY + 1.5)
            marked = marks_in(ground.audit.entries(since))
            late = [(at - begun, name) for at, name in marked if at > begun + MARKED_BY]
            assert late == [], (number, late)
            before += len(marked)
            old = [c for c in await ground.claims() if c["metadata"]["labels"]["colour"] != f"c{number + 1}"]
            held += any(not owner_of(c) for c in old)
        finally:
            await ground.api.delete(path("Freeze", "peak"))
    print(f"{before} marks before a Freeze or within a second of it, nodes held back in {held} of {TRIES} tries")
    await ground.until(lambda: ground.settled(DRIFTING), 240, "the pods run")


MANY: Final = 20


async def test_a_freeze_that_undoes_gives_twenty_nodes_back_within_ten_seconds(ground: Ground) -> None:
    def pool_of(colour: str) -> Json:
        pool = node_pool(colour, consolidate_after="Never")
        pool["metadata"]["annotations"] = {names.DRAIN_FIRST: "true"}
        return pool

    await ground.apply(pool_of("blue"))
    await ground.apply(deployment(MANY, cpu="3"))
    try:
        await ground.until(lambda: ground.settled(MANY), 180, "the pods run")
        await annotate(ground, SYSTEM, paused="drains")  # so that they stay between their marks and their deletes
        old = {c["metadata"]["name"]: c["status"]["nodeName"] for c in await ground.claims()}
        assert len(old) == MANY
        changed = time.monotonic()
        await ground.apply(pool_of("green"))

        async def marked() -> int:
            return sum(bool(owner_of(c)) for c in await ground.claims() if c["metadata"]["name"] in old)

        async def all_marked() -> bool:
            return await marked() == MANY

        async def as_before() -> bool:
            tainted = {n["metadata"]["name"] for n in await ground.nodes() if is_tainted(n)}
            return not tainted & set(old.values()) and await marked() == 0

        await ground.until(all_marked, 180, "all twenty are marked")
        began = time.monotonic()
        await create(ground, a_freeze("peak", inFlight="Undo"))
        await ground.until(as_before, 10, "all twenty are as they were")
        undone = time.monotonic() - began
        print(f"twenty marked {began - changed:.1f} s after the change, as they were {undone:.1f} s after the Freeze")
        claims = {c["metadata"]["name"]: c for c in await ground.claims()}
        assert all("deletionTimestamp" not in claims[name]["metadata"] for name in old)
    finally:
        await annotate(ground, SYSTEM, paused=None)
        await ground.api.delete(path("Freeze", "peak"))
