"""A new version that says nothing new is no change, whatever the kind; one that says something is."""

import copy
from typing import Any, Final

import pytest

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import BUFFER_KINDS, CLUSTER_KINDS, DEVICE_KINDS, NODE_OVERLAY
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.values.json import Json
from tests.adapters.kubernetes_json.whole_objects import whole_objects

KINDS: Final = (*CLUSTER_KINDS, *BUFFER_KINDS, *DEVICE_KINDS, NODE_OVERLAY)


def at_version(raw: Json, version: int) -> Json:
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(version)}}


def with_news_that_nobody_reads(raw: Json) -> Json:
    """What kubelets and controllers write again and again."""
    found: dict[str, Any] = copy.deepcopy(raw)
    found["metadata"]["managedFields"] = [{"manager": "kubelet", "time": "2026-08-20T12:05:00Z"}]
    status = found.setdefault("status", {})
    node = {"machineID": "b"}
    status |= {"observedGeneration": 9, "readyReplicas": 2, "images": [{"names": ["x"]}], "nodeInfo": node}
    for condition in status.get("conditions") or ():
        condition |= {"lastHeartbeatTime": "2026-08-20T12:05:00Z", "lastProbeTime": "2026-08-20T12:05:00Z"}
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} by {getattr(kind.parse, '__name__', 'part')}")
def test_a_version_with_nothing_that_is_read_is_held_and_is_no_change(kind: Kind) -> None:
    cache, raw = Cache([kind]), whole_objects()[kind.name]
    cache.apply(kind.name, at_version(raw, 5), deleted=False)
    revision = cache.revision

    cache.apply(kind.name, at_version(with_news_that_nobody_reads(raw), 6), deleted=False)

    [held] = cache.objects(kind.name).values()
    assert cache.revision == revision
    assert getattr(held, "resource_version", "6") == "6" and cache.snapshot(0.0).seen[kind.name] == 6


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} by {getattr(kind.parse, '__name__', 'part')}")
def test_an_object_that_goes_and_comes_again_is_two_changes(kind: Kind) -> None:
    cache, raw = Cache([kind]), whole_objects()[kind.name]
    cache.apply(kind.name, at_version(raw, 5), deleted=False)
    revision = cache.revision

    cache.apply(kind.name, at_version(raw, 6), deleted=True)
    cache.apply(kind.name, at_version(raw, 7), deleted=False)

    assert cache.revision == revision + 2


def test_a_pod_that_cannot_be_read_is_reported_once_and_no_change_at_each_version() -> None:
    reports: list[Unreadable] = []
    cache, raw = Cache(CLUSTER_KINDS, report=reports.append), whole_objects()["Pod"]
    raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    cache.apply("Pod", at_version(raw, 5), deleted=False)
    revision = cache.revision

    cache.apply("Pod", at_version(with_news_that_nobody_reads(raw), 6), deleted=False)

    assert len(reports) == 1 and cache.revision == revision


def test_a_node_s_condition_that_turns_is_a_change() -> None:
    cache, raw = Cache(CLUSTER_KINDS), whole_objects()["Node"]
    cache.apply("Node", at_version(raw, 5), deleted=False)
    revision = cache.revision

    turned = copy.deepcopy(raw)
    turned["status"]["conditions"][0]["status"] = "Unknown"
    cache.apply("Node", at_version(turned, 6), deleted=False)

    assert cache.revision == revision + 1
