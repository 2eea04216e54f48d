"""The view over a simulated world: it follows what others write, and says when it cannot."""

import asyncio
import sqlite3

import pytest

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.feed import news_since
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.messages.writes import Write
from dovetail.ports.failures import Misconfigured, NotSeenYet
from dovetail.wiring.simulated import SimulatedAdapter
from tests.adapters.simulator.conftest import Stage
from tests.adapters.simulator.manifests import a_new_claim
from worlds.manifests import node_manifest, pod_manifest, pool_manifest

PATIENCE_SECONDS = 60.0


async def seen(adapter: SimulatedAdapter, write: Write) -> None:
    await asyncio.wait_for(adapter.view.catch_up([write]), PATIENCE_SECONDS)


async def test_a_write_by_another_process_wakes_a_waiting_reader(stage: Stage, adapter: SimulatedAdapter) -> None:
    before = adapter.view.revision()

    stage.world.apply(node_manifest())
    after = await asyncio.wait_for(adapter.view.changed(before), PATIENCE_SECONDS)

    assert after > before
    assert adapter.lookups.node("n1") is not None


async def test_heartbeats_are_seen_and_are_no_change(stage: Stage, adapter: SimulatedAdapter) -> None:
    stage.world.apply(node_manifest())
    await asyncio.wait_for(adapter.view.changed(adapter.view.revision() - 1), PATIENCE_SECONDS)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-08-20T12:00:00Z"}
    first = stage.world.patch("Node", "n1", {"status": {"conditions": [ready]}}, "status")["metadata"]
    await seen(adapter, Write(kind="Node", name="n1", uid=first["uid"], version=int(first["resourceVersion"])))
    before = adapter.view.revision()

    for second in range(10):
        beat = [{**ready, "lastHeartbeatTime": f"2026-08-20T12:00:{second:02}Z"}]
        last = stage.world.patch("Node", "n1", {"status": {"conditions": beat}}, "status")["metadata"]
    await seen(adapter, Write(kind="Node", name="n1", uid=last["uid"], version=int(last["resourceVersion"])))

    node = adapter.lookups.node("n1")
    assert node is not None and node.resource_version == last["resourceVersion"]
    assert adapter.view.revision() == before


async def test_our_own_writes_are_caught_up_with(adapter: SimulatedAdapter) -> None:
    claim = await adapter.claims.create(a_new_claim())
    version = await adapter.claims.delete(claim.name, claim.uid)

    await seen(adapter, Write(kind="NodeClaim", name=claim.name, uid=claim.uid, version=version))

    found = adapter.lookups.claim(claim.name)
    assert found is not None
    assert found.deleting_since is not None


async def test_a_deletion_that_was_carried_out_is_caught_up_with(adapter: SimulatedAdapter) -> None:
    claim = await adapter.claims.create(a_new_claim(finalizers=()))
    version = await adapter.claims.delete(claim.name, claim.uid)

    await seen(adapter, Write(kind="NodeClaim", name=claim.name, uid=claim.uid, version=version))

    assert version == 0
    assert adapter.lookups.claim(claim.name) is None


def test_an_object_replaced_under_its_name_is_seen_as_a_deletion_and_a_creation(stage: Stage) -> None:
    store = Store(stage.file)
    with store.reading() as connection:
        before = objects.newest_revision(connection)
    first = stage.world.apply(pod_manifest())
    stage.world.delete("Pod", "lone")
    second = stage.world.apply(pod_manifest())

    with store.reading() as connection:
        news, _ = news_since(connection, before)
    store.close()

    assert [(n.deleted, n.body["metadata"]["uid"]) for n in news] == [
        (True, first["metadata"]["uid"]),
        (False, second["metadata"]["uid"]),
    ]


async def test_an_object_that_cannot_be_read_is_set_aside_and_the_others_stay(
    stage: Stage, adapter: SimulatedAdapter
) -> None:
    stage.world.apply(pool_manifest())
    broken = stage.world.apply(pool_manifest("broken"))
    broken["spec"]["limits"] = {"cpu": "much"}

    written = stage.world.put_raw(broken)
    version = int(written["metadata"]["resourceVersion"])
    await seen(adapter, Write(kind="NodePool", name="broken", uid=written["metadata"]["uid"], version=version))

    assert [(u.kind, u.name) for u in adapter.view.unreadable()] == [("NodePool", "broken")]
    assert set(adapter.view.snapshot().pools) == {"default"}


async def test_a_view_whose_watch_has_ended_is_not_to_be_decided_upon(stage: Stage, adapter: SimulatedAdapter) -> None:
    before = adapter.view.revision()
    connection = sqlite3.connect(stage.file)
    connection.execute("INSERT INTO changes (kind, key, uid) VALUES ('Node', 'never-was', '')")
    connection.commit()
    connection.close()

    # The end of the watch counts as a change, so a reader that waits for one wakes up and sees it.
    await asyncio.wait_for(adapter.view.changed(before), PATIENCE_SECONDS)

    with pytest.raises(NotSeenYet, match="the watch has ended"):
        adapter.view.snapshot()


def test_a_file_that_holds_no_world_is_named(stage: Stage) -> None:
    empty = stage.file.with_name("empty")
    empty.touch()

    with pytest.raises(Misconfigured, match="empty"):
        SimulatedAdapter.open(empty)


def test_a_world_that_is_not_there_is_named(stage: Stage) -> None:
    with pytest.raises(Misconfigured, match="nowhere"):
        SimulatedAdapter.open(stage.file.with_name("nowhere"))
