"""A window and a Freeze on the real API server, by kubectl's writes alone; the worker has the shipped rights."""

import time
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.json import Json
from dovetail.model.time import format_time
from testing.cluster.ground import Ground, deployment, has_condition, is_tainted, node_pool, owner_of
from tests.cluster.test_pauses import SYSTEM, annotate

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

KINDS = {"DisruptionPolicy": "disruptionpolicies", "Freeze": "freezes"}
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
