"""The checker of the storms can find what it looks for."""

from typing import Any

import pytest

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from tests.storm.records import most_marked, waited
from worlds.manifests import claim_manifest

POOL = "left"


def claim(uid: str, version: int, owner: str = "", **metadata: Any) -> Json:
    given = {
        "uid": uid,
        "name": uid,
        "resourceVersion": str(version),
        "labels": {names.NODE_POOL: POOL},
        "annotations": {names.OWNER: owner} if owner else {},
    }
    return {**claim_manifest(), "metadata": {**given, **metadata}, "status": {}}


def terminating(body: Json) -> Json:
    return {**body, "status": {"conditions": [{"type": names.INSTANCE_TERMINATING, "status": "True"}]}}


def written(*bodies: Json, code: int = 200) -> list[AuditEntry]:
    common: dict[str, Any] = {"time": "", "user": "", "user_agent": "", "verb": "patch", "group": "karpenter.sh"}
    rest: dict[str, Any] = {"resource": "nodeclaims", "subresource": "", "namespace": "", "code": code}
    return [AuditEntry(**common, **rest, name=body["metadata"]["name"], response=body) for body in bodies]


def test_marks_that_stand_side_by_side_are_counted_and_the_same_mark_once() -> None:
    first, second = claim("a", 1, "x"), claim("b", 2, "x")
    assert most_marked(written(first, second, claim("a", 3, "x"))) == ({POOL: 2}, 2)


def test_the_order_is_that_of_revisions() -> None:
    """10 comes after 9, whatever the log's order."""
    ended = claim("a", 9)
    assert most_marked(written(claim("b", 10, "x"), ended, claim("a", 8, "x"))) == ({POOL: 1}, 2)


@pytest.mark.parametrize(
    "end",
    [
        claim("a", 2),
        terminating(claim("a", 2, "x")),
        claim("a", 2, "x", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[]),
    ],
    ids=["unmarked", "terminating", "gone"],
)
def test_a_mark_that_is_over_counts_no_more(end: Json) -> None:
    assert most_marked(written(claim("a", 1, "x"), end, claim("b", 3, "x"))) == ({POOL: 1}, 2)


def test_one_that_leaves_still_counts() -> None:
    leaving = claim("a", 2, "x", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"])
    assert most_marked(written(claim("a", 1, "x"), leaving, claim("b", 3, "x"))) == ({POOL: 2}, 2)


def test_a_write_that_was_refused_is_none() -> None:
    assert most_marked(written(claim("a", 1, "x"), code=409)) == ({}, 0)


@pytest.mark.parametrize(
    ("ended", "seconds"),
    [
        ({}, 60.0),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "1970-01-01T00:00:10Z"}]},
            60.0,
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:10Z"}]},
            10.0,
        ),
    ],
    ids=["waits", "was tried", "bound"],
)
def test_a_pod_waits_until_it_is_bound(ended: Json, seconds: float) -> None:
    pod: Json = {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}, "status": ended}
    assert waited(pod, 60.0) == seconds


def test_a_pod_that_is_deleted_waits_no_more() -> None:
    metadata = {"creationTimestamp": "1970-01-01T00:00:00Z", "deletionTimestamp": "1970-01-01T00:00:05Z"}
    assert waited({"metadata": metadata}, 60.0) == 5.0
