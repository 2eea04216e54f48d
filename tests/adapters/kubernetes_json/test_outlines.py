"""What is known of a pod that cannot be read, and whom that holds up."""

from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.parsing.outlines import outline_of
from dovetail.adapters.kubernetes_json.parsing.pods import pods_that_hold
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.model.values.json import Json
from dovetail.ports.failures import NotReadable

NOW = 1_700_000_000.0
LONG_AGO, JUST_NOW = "2023-11-14T22:00:00Z", "2023-11-14T22:13:19Z"
NODE_OWNS_IT = [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n"}]


def odd(phase: str = "Running", **metadata: Any) -> Json:
    """A pod of a node whose containers are no list."""
    return {
        "metadata": {"name": "odd", "namespace": "apps", "uid": "uid-odd", "resourceVersion": "5", **metadata},
        "spec": {"nodeName": "n1", "containers": {"x" * 10**6: None}},
        "status": {"phase": phase},
    }


def view_of(raw: Json) -> CachedView:
    cache = Cache(CLUSTER_KINDS, report=lambda _: None)
    cache.replace("Pod", [raw], 5)
    return CachedView(cache, clock=lambda: NOW)


@pytest.mark.parametrize(
    ("raw", "holds"),
    [
        (odd(), True),
        (odd(phase="Pending"), True),
        (odd(phase="Failed"), False),
        (odd(phase="Succeeded"), False),
        (odd(deletionTimestamp=LONG_AGO), False),
        (odd(deletionTimestamp=JUST_NOW), True),
        (odd(deletionTimestamp="soon"), True),
        (odd(ownerReferences=NODE_OWNS_IT), False),
    ],
)
def test_a_pod_that_cannot_be_read_holds_its_node_while_it_may_run(raw: Json, holds: bool) -> None:
    """In the cache, in a snapshot and in a live list alike."""
    view = view_of(raw)
    [found] = view.snapshot().unreadable
    assert (found.kind, found.name, found.uid, found.node) == ("Pod", "apps/odd", "uid-odd", "n1")
    assert len(found.message) < 600
    assert found.holds_its_node(NOW) is holds
    if not holds:
        assert view.pods_on("n1") == pods_that_hold([raw], NOW) == ()
        return
    with pytest.raises(NotReadable, match="apps/odd"):
        view.pods_on("n1")
    with pytest.raises(NotReadable, match="apps/odd"):
        pods_that_hold([raw], NOW)


@pytest.mark.parametrize("raw", [None, [], {}, {"metadata": 5, "spec": [], "status": "x"}, {"metadata": {"name": 7}}])
def test_an_outline_can_be_made_of_anything(raw: Any) -> None:
    assert (outline_of(raw).name, outline_of(raw).phase) == ("", "Pending")


def test_a_pod_that_is_put_right_is_left_out_no_longer() -> None:
    view = view_of(odd())
    sound = odd()
    sound["metadata"]["resourceVersion"], sound["spec"]["containers"] = "6", []
    view.cache.apply("Pod", sound, deleted=False)
    assert view.snapshot().unreadable == ()
    assert [pod.name for pod in view.pods_on("n1")] == ["odd"]
