"""The cache holds what the API server says, whatever the stream repeats, delays or leaves out."""

import asyncio
import threading
import time
from typing import Any, cast

import pytest

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.messages.writes import Write
from dovetail.model.objects.unreadable import Unreadable
from dovetail.ports.failures import NotReadable, NotSeenYet
from tests.adapters.kubernetes_json.kinds_for_tests import ALL, Thing, a_thing

STORAGE_CLASS = next(kind for kind in CLUSTER_KINDS if kind.name == "StorageClass")


def a_storage_class(uid: str, version: int) -> dict[str, Any]:
    """Its UID is not among what is read of it."""
    return {"metadata": {"name": "n", "uid": uid, "resourceVersion": str(version)}, "provisioner": "a"}


def a_cache(reports: list[Unreadable] | None = None) -> Cache:
    return Cache((*ALL, STORAGE_CLASS), report=(reports if reports is not None else []).append)


class TestEvents:
    def test_the_newest_version_of_an_object_is_held(self) -> None:
        cache = a_cache()

        cache.apply("Node", a_thing("n", 5, "here"), deleted=False)
        cache.apply("Node", a_thing("n", 4, "there"), deleted=False)

        assert cache.objects("Node") == {"n": Thing("n", "uid-n", "5", "here")}

    def test_a_late_delete_of_a_former_object_leaves_its_successor(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 9, uid="second"), deleted=False)

        cache.apply("Node", a_thing("n", 8, uid="first"), deleted=True)

        assert cache.objects("Node")["n"].uid == "second"

    def test_a_repeated_event_does_not_bring_a_deleted_object_back(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        cache.apply("Node", a_thing("n", 7), deleted=True)

        cache.apply("Node", a_thing("n", 5), deleted=False)
        cache.apply("Node", a_thing("n", 7), deleted=False)

        assert cache.objects("Node") == {}

    def test_a_list_is_the_truth_even_where_it_is_older(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 50), deleted=False)

        cache.replace("Node", [a_thing("m", 20)], 30)
        cache.apply("Node", a_thing("m", 31, "here"), deleted=False)

        assert cache.objects("Node") == {"m": Thing("m", "uid-m", "31", "here")}
        assert cache.snapshot(0.0).seen["Node"] == 31

    def test_an_older_list_is_read_afresh_where_a_version_is_of_another_content(self) -> None:
        """Versions after a restore are given out a second time: the taint from before would stay until the next
        change."""
        cache = a_cache()
        heard = list[tuple[Any, Any]]()
        cache.apply("Node", a_thing("n", 50, "before"), deleted=False)
        cache.listen("Node", lambda old, new: heard.append((old, new)))
        cache.bookmark("Node", 60)
        revision, n = cache.revision, Thing("n", "uid-n", "50", "after")

        cache.replace("Node", [a_thing("n", 50, "after")], 55)

        assert (cache.objects("Node"), cache.indexed("Node", "after"), heard[-1][1]) == ({"n": n}, (n,), n)
        assert cache.revision > revision and dict[str, Any](cache.snapshot(0.0).nodes) == {"n": n}

    def test_what_a_list_left_out_is_gone_and_an_event_from_before_it_is_ignored(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)

        cache.replace("Node", [], 10)
        cache.apply("Node", a_thing("n", 6), deleted=False)

        assert cache.objects("Node") == {}

    def test_the_revision_rises_with_changes_only(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        before = cache.revision

        cache.apply("Node", a_thing("n", 5), deleted=False)
        cache.apply("Node", a_thing("unknown", 6), deleted=True)
        cache.bookmark("Node", 9)
        cache.replace("Node", [a_thing("n", 5)], 10)

        assert cache.revision == before

    def test_another_object_of_the_same_name_is_a_change_although_it_says_the_same(self) -> None:
        cache = a_cache()
        cache.apply("StorageClass", a_storage_class("first", 5), deleted=False)
        before = cache.revision

        cache.apply("StorageClass", a_storage_class("first", 6), deleted=False)
        assert cache.revision == before

        cache.apply("StorageClass", a_storage_class("second", 7), deleted=False)
        assert cache.revision == before + 1

    def test_an_object_that_is_kept_raw_is_a_change_at_every_version(self) -> None:
        """Whoever reads it may read anything."""
        cache = a_cache()
        cache.apply("EC2NodeClass", a_thing("c", 5), deleted=False)
        before = cache.revision

        cache.apply("EC2NodeClass", a_thing("c", 6), deleted=False)

        assert cache.revision == before + 1

    def test_an_object_without_a_version_is_reported_and_ignored(self) -> None:
        reports: list[Unreadable] = []
        cache = a_cache(reports)

        cache.apply("Node", {"metadata": {"name": "n"}}, deleted=False)

        message = "no name or no resourceVersion"
        assert reports == [Unreadable(kind="Node", name="n", field="metadata", message=message)]
        assert cache.objects("Node") == {}


class TestUnreadableObjects:
    def test_an_unreadable_object_takes_its_readable_past_with_it(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5, "here"), deleted=False)

        cache.apply("Node", a_thing("n", 6, "nowhere"), deleted=False)

        expected = Unreadable(kind="Node", name="n", field="spec.place", message="there is no such place", uid="uid-n")
        assert cache.objects("Node") == {}
        assert cache.indexed("Node", "here") == ()
        assert cache.unreadable() == (expected,)

    def test_it_is_reported_once(self) -> None:
        reports: list[Unreadable] = []
        cache = a_cache(reports)

        for version in (5, 6, 7):
            cache.apply("Node", a_thing("n", version, "nowhere"), deleted=False)
        cache.replace("Node", [a_thing("n", 7, "nowhere")], 8)

        assert len(reports) == 1

    def test_it_is_reported_again_when_it_breaks_again(self) -> None:
        reports: list[Unreadable] = []
        cache = a_cache(reports)

        cache.apply("Node", a_thing("n", 5, "nowhere"), deleted=False)
        cache.apply("Node", a_thing("n", 6), deleted=True)
        cache.apply("Node", a_thing("n", 7, "nowhere"), deleted=False)

        assert len(reports) == 2

    def test_repaired_it_is_back(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5, "nowhere"), deleted=False)

        cache.apply("Node", a_thing("n", 6, "here"), deleted=False)

        assert cache.unreadable() == ()
        assert cache.indexed("Node", "here") == (Thing("n", "uid-n", "6", "here"),)

    def test_what_no_parser_foresaw_is_set_aside_too(self) -> None:
        cache = a_cache()

        cache.apply("Node", {"metadata": {"name": "n", "uid": "u", "resourceVersion": "3"}}, deleted=False)

        assert [u.message for u in cache.unreadable()] == ["KeyError: 'spec'"]

    def test_a_node_does_not_look_empty_because_its_pod_cannot_be_read(self) -> None:
        cache = a_cache()
        raw = a_thing("web", 5, "nowhere", namespace="shop")
        raw["spec"]["nodeName"] = "n"

        cache.apply("Pod", raw, deleted=False)

        with pytest.raises(NotReadable, match=r"Pod/shop/web: spec\.place: there is no such place"):
            CachedView(cache, time.time).pods_on("n")
        assert CachedView(cache, time.time).pods_on("m") == ()


class TestLookups:
    def test_pods_of_one_name_are_distinguished_by_their_uids(self) -> None:
        cache = a_cache()
        cache.apply("Pod", a_thing("web-0", 9, "b", uid="second", namespace="shop"), deleted=False)
        cache.apply("Pod", a_thing("web-0", 5, "a", uid="first", namespace="shop"), deleted=False)

        cache.apply("Pod", a_thing("web-0", 8, "a", uid="first", namespace="shop"), deleted=True)

        assert list(cache.snapshot(0.0).pods) == ["second"]
        assert cache.indexed("Pod", "a") == ()

    def test_an_index_follows_an_object_that_moves(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5, "a"), deleted=False)

        cache.apply("Node", a_thing("n", 6, "b"), deleted=False)

        assert (cache.indexed("Node", "a"), len(cache.indexed("Node", "b"))) == ((), 1)

    def test_nothing_is_found_under_the_empty_value(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5, ""), deleted=False)
        cache.replace("Pod", [a_thing("p", 5, "")], 6)

        assert (cache.indexed("Node", ""), cache.indexed("Pod", "")) == ((), ())

    def test_kinds_that_share_a_mapping_do_not_hide_each_other(self) -> None:
        cache = a_cache()
        cache.apply("Service", a_thing("web", 5, namespace="shop"), deleted=False)
        cache.apply("ReplicaSet", a_thing("web", 6, namespace="shop"), deleted=False)

        assert sorted(cache.snapshot(0.0).selector_sources) == ["ReplicaSet/shop/web", "Service/shop/web"]

    def test_raw_kinds_are_kept_as_they_came(self) -> None:
        cache = a_cache()
        raw = a_thing("default", 5)

        cache.apply("EC2NodeClass", raw, deleted=False)

        assert cache.objects("EC2NodeClass") == {"default": raw}

    def test_a_snapshot_does_not_change_afterwards(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        snapshot = cache.snapshot(1.0)

        cache.apply("Node", a_thing("n", 6), deleted=True)

        assert list(snapshot.nodes) == ["n"]

    def test_snapshots_share_one_copy_of_a_kind_until_it_says_something(self) -> None:
        cache = a_cache()
        for kind in ("Node", "Pod"):
            cache.apply(kind, a_thing("n", 5), deleted=False)
        before = cache.snapshot(1.0)

        cache.apply("Pod", a_thing("n", 6, "there"), deleted=False)

        after = cache.snapshot(2.0)
        assert after.nodes is before.nodes
        assert [cast(Any, each).place for each in (*before.pods.values(), *after.pods.values())] == ["", "there"]

    def test_the_revision_of_some_kinds_rises_with_their_changes_and_where_everybody_is_woken(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        cache.apply("Pod", a_thing("n", 6), deleted=False)

        assert [cache.revision_of(kinds) for kinds in ({"Node"}, {"Pod"}, {"Node", "Pod"})] == [1, 2, 2]
        cache.apply("Node", a_thing("n", 7), deleted=False)
        assert cache.revision_of({"Node"}) == 1, "it said nothing new"
        cache.poke()
        assert cache.revision_of({"Node"}) == 3


class TestWaiting:
    async def test_a_change_from_another_thread_wakes_who_waits(self) -> None:
        cache = a_cache()
        view = CachedView(cache, time.time)
        waiting = asyncio.create_task(view.changed(view.revision()))
        await asyncio.sleep(0)

        threading.Thread(target=cache.apply, args=("Node", a_thing("n", 5)), kwargs={"deleted": False}).start()

        assert await asyncio.wait_for(waiting, 60) == 1

    async def test_a_change_that_has_already_happened_is_not_waited_for(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)

        assert await asyncio.wait_for(CachedView(cache, time.time).changed(0), 60) == 1

    async def test_a_version_that_says_nothing_new_ends_a_catch_up_and_wakes_nobody_else(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        view = CachedView(cache, time.time)
        with cache.changes.listen() as change:
            catching_up = asyncio.create_task(view.catch_up([Write(kind="Node", name="n", uid="uid-n", version=7)]))
            await asyncio.sleep(0)

            cache.apply("Node", a_thing("n", 7), deleted=False)

            await asyncio.wait_for(catching_up, 60)
            assert not change.done()

    async def test_catching_up_waits_for_the_version_of_a_write(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        view = CachedView(cache, time.time)
        waiting = asyncio.create_task(view.catch_up([Write(kind="Node", name="n", uid="uid-n", version=7)]))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()

        cache.bookmark("Node", 8)

        await asyncio.wait_for(waiting, 60)

    async def test_an_object_that_is_gone_counts_as_seen(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5), deleted=False)
        cache.apply("Node", a_thing("n", 9), deleted=True)

        await asyncio.wait_for(
            CachedView(cache, time.time).catch_up([Write(kind="Node", name="n", uid="uid-n", version=7)]), 1
        )

    async def test_a_write_that_ended_an_object_is_seen_when_nothing_with_its_uid_is_held(self) -> None:
        cache = a_cache()
        cache.apply("Node", a_thing("n", 5, uid="first"), deleted=False)
        gone = Write(kind="Node", name="n", uid="first", version=0)
        assert not cache.has_seen(gone)

        cache.apply("Node", a_thing("n", 9, uid="second"), deleted=False)

        assert cache.has_seen(gone)

    async def test_a_write_that_never_comes_is_not_seen_yet(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dovetail.adapters.kubernetes_json.view.CATCH_UP_SECONDS", 0.05)
        view = CachedView(a_cache(), time.time)

        with pytest.raises(NotSeenYet, match="Node/n: not seen at version 7"):
            await view.catch_up([Write(kind="Node", name="n", uid="u", version=7)])

    async def test_a_view_that_is_not_usable_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dovetail.adapters.kubernetes_json.view.CATCH_UP_SECONDS", 0.05)
        view = CachedView(a_cache(), time.time, problem=lambda _: "the watch of pods is broken")

        for ask in (view.snapshot, lambda: view.node("n"), lambda: view.pods_on("n"), lambda: view.nodes_of("i")):
            with pytest.raises(NotSeenYet, match="the watch of pods is broken"):
                ask()
        with pytest.raises(NotSeenYet, match="the watch of pods is broken"):
            await view.catch_up([Write(kind="Pod", name="p", uid="u", version=1)])


class TestThreads:
    def test_snapshots_taken_while_another_thread_feeds_are_whole(self) -> None:
        """Each node comes before its pod and goes after it, so a snapshot with a pod must have its node."""
        cache = a_cache()
        done = threading.Event()

        def feed() -> None:
            version = 0
            for round_number in range(400):
                name = f"n{round_number % 20}"
                for kind, deleted in (("Node", False), ("Pod", False), ("Pod", True), ("Node", True)):
                    version += 1
                    cache.apply(kind, a_thing(name, version, name, uid=f"{kind}-{name}"), deleted=deleted)
            done.set()

        feeder = threading.Thread(target=feed)
        feeder.start()
        torn, taken = [], 0
        while not done.is_set() or not taken:
            snapshot = cache.snapshot(0.0)
            taken += 1
            torn += [pod.name for pod in snapshot.pods.values() if pod.name not in snapshot.nodes]
        feeder.join()

        assert torn == []
