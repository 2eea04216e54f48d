"""The story of "Windows" and "Freezes" in the guide, by kubectl alone: a window holds and opens, a Freeze calls off."""

import time
from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time, parse_time
from tests.system.beside import beside
from tests.system.test_pauses import annotate, node_that_drains_first, shown
from worlds.stage.stage import Stage, has_condition

pytestmark = pytest.mark.temporal

ALL_DAY = {"from": "00:00", "to": "00:00", "reasons": ["Drifted"]}


def a_policy(**spec: Any) -> Json:
    kind = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy"}
    return {**kind, "metadata": {"name": "nights"}, "spec": {"timeZone": "Europe/Berlin", **spec}}


def a_freeze(**spec: Any) -> Json:
    until = format_time(time.time() + 3600.0)
    kind = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "Freeze", "metadata": {"name": "peak"}}
    return {**kind, "spec": {"until": until, "reason": "peak season", **spec}}


@beside
async def test_a_window_holds_and_opens_and_a_freeze_calls_off_what_has_begun(stage: Stage) -> None:
    pool, claim = await node_that_drains_first(stage)
    name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
    annotate(stage, "Namespace", "kube-system", paused="drains")  # so that it stays between its mark and its delete
    stage.world.apply(a_policy(deny=[ALL_DAY]))
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)

    def found() -> Json:
        body = stage.world.get("NodeClaim", name)
        assert body is not None
        return body

    await stage.until(lambda: has_condition(found(), names.DRIFTED), 60, "it has drifted")
    held = await shown(stage, "explain", "node", node)
    assert "by DisruptionPolicy nights: in deny[0]" in held
    assert names.OWNER not in (found()["metadata"].get("annotations") or {})

    stage.world.apply(a_policy(deny=[], allow=[ALL_DAY], rates=[{"nodes": "1", "per": "1h"}]))
    await stage.until(lambda: stage.tainted() == [node], 120, "the drifted node is marked when the window opens")
    await stage.until(lambda: stage.initialised(2), 120, "its replacement is ready")
    marked = stage.world.get("NodePool", pool["metadata"]["name"])
    assert marked is not None and marked["metadata"]["annotations"][names.BEGUN].startswith('{"v":1,"entries":[{"at":')

    stage.world.apply(a_freeze(inFlight="Undo"))
    await stage.until(lambda: names.OWNER not in found()["metadata"]["annotations"], 60, "its disruption is called off")
    await stage.until(lambda: node not in stage.tainted(), 60, "and the node is as it was")

    assert "deletionTimestamp" not in found()["metadata"] and names.REST in found()["metadata"]["annotations"]
    assert "by Freeze peak: peak season" in await shown(stage, "explain", "node", node)
    assert "by Freeze peak: peak season" in await shown(stage, "history", node)


def ready_as(stage: Stage, node: str, status: str) -> None:
    """What a kubelet, or the node controller in its place, says of the node. A silent one takes nothing of it back."""
    annotations = {"embedded.dovetail.sh/kubelet-silent": "true"}
    stage.world.patch("Node", node, {"metadata": {"annotations": annotations}})
    body = stage.world.get("Node", node)
    assert body is not None
    others = [each for each in body["status"]["conditions"] if each["type"] != "Ready"]
    condition = {"type": "Ready", "status": status, "reason": "Kubelet", "lastTransitionTime": format_time(time.time())}
    stage.world.patch("Node", node, {"status": {"conditions": [*others, condition]}}, "status")


@beside
async def test_while_nodes_are_not_well_none_begins_to_leave(stage: Stage) -> None:
    """The story of "Health" in the guide, until it has passed for so long."""
    pool, claim = await node_that_drains_first(stage)
    annotate(stage, "Namespace", "kube-system", paused="drains")
    node = claim["status"]["nodeName"]
    stage.world.apply(a_policy(health={"maxNotReady": "0", "stableFor": "20s"}))
    ready_as(stage, node, "False")

    def health() -> Json:
        policy = stage.world.get("DisruptionPolicy", "nights")
        found: Json = ((policy or {}).get("status") or {}).get("health") or {}
        return found

    await stage.until(lambda: health().get("state") == "Failing", 60, "its status says that it fails")
    pool["spec"]["template"]["metadata"] = {"labels": {"colour": "green"}}
    stage.world.apply(pool)
    await stage.until(lambda: has_condition(stage.claims()[0], names.DRIFTED), 60, "it has drifted")
    words = "by the health of DisruptionPolicy nights: 1 of 1 nodes are not ready, at most 0 may be"
    assert words in await shown(stage, "explain", "node", node)
    assert "nodes unhealthy" in await shown(stage, "status")

    ready_as(stage, node, "True")
    await stage.until(lambda: health().get("state") == "Passing", 60, "it passes")
    assert stage.tainted() == []
    since = parse_time(health()["since"])
    await stage.until(lambda: stage.tainted() == [node], 120, "it is marked")
    assert time.time() >= since + 20.0
