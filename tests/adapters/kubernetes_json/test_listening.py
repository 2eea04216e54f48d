"""A listener is called once for each change, with the object before and after, and never without a change."""

from typing import Any

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.model.pods import Pod


def raw(name: str, version: int) -> dict[str, Any]:
    meta = {"name": name, "namespace": "d", "uid": name, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"containers": []}}


def test_a_listener_hears_what_stands_and_then_what_changes() -> None:
    cache, calls = Cache(CLUSTER_KINDS), []

    def listener(old: Pod | None, new: Pod | None) -> None:
        calls.append((old and old.resource_version, new and new.resource_version))

    cache.replace("Pod", [raw("a", 1), raw("b", 2)], 2)
    cache.listen("Pod", listener)
    cache.apply("Pod", raw("a", 3), deleted=False)
    cache.apply("Pod", raw("a", 3), deleted=False)
    cache.replace("Pod", [raw("a", 3), raw("c", 5)], 5)
    cache.apply("Pod", raw("c", 6), deleted=True)

    assert calls[:3] == [(None, "1"), (None, "2"), ("1", "3")]
    assert sorted(calls[3:5], key=str) == [("2", None), (None, "5")]
    assert calls[5:] == [("5", None)]
