"""A cloud that takes questions and never answers holds up nothing that can be done without it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from dovetail.activities.shared.looks.snapshots import Snapshots, whole_snapshot
from dovetail.activities.upkeep.cancels import CancelUpkeep
from dovetail.activities.upkeep.claims import ClaimUpkeep
from dovetail.activities.upkeep.keep_up import KeepUp
from dovetail.background.supervised import stop
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.own.claim_memory import CalledOff, memory_of
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.ports.failures import Unreachable
from dovetail.settings.providers import PROVIDERS
from dovetail.wiring import patient_catalogues
from dovetail.wiring.world import World
from tests.adapters.kube.fake_server import FakeServer, says
from tests.waiting import until, until_answered
from tests.worker.made_up_cloud import NODE_CLASS, MadeUpCloud
from tests.worker.test_providers import opened
from worlds.fakes import unasked
from worlds.manifests import pool_manifest

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLASS = {"group": NODE_CLASS.group, "kind": NODE_CLASS.kind, "name": "default"}
ITS_CATALOGUE = MadeUpCloud.catalogue
CALLED_OFF = "claim-9"
LONG_AGO = "2026-01-01T00:00:00Z"
ITS_PATH = f"{CLAIMS}/{CALLED_OFF}"


def a_listed_pool() -> Json:
    of = NodeClassRef(group=NODE_CLASS.group, kind=NODE_CLASS.kind, name="default")
    return {**pool_manifest(of=of), "metadata": {"name": "web", "uid": "pool-1", "resourceVersion": "2"}}


def a_launched_claim(name: str, **annotations: str) -> Json:
    launched = {
        "type": "Launched",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "Launched",
    }
    meta = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "3",
        "creationTimestamp": LONG_AGO,
        "labels": {names.NODE_POOL: "web"},
        "annotations": annotations,
    }
    status = {"providerID": f"made-up:///a/{name}", "conditions": [launched]}
    return {"metadata": meta, "spec": {"nodeClassRef": CLASS, "requirements": []}, "status": status}


async def looked(world: World) -> Snapshot:
    """What a decision sees."""
    looking = asyncio.create_task(whole_snapshot(world.view, world.catalogues))
    await until(looking.done, words="the look comes to its end")
    return looking.result()


@pytest.fixture
async def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[World, FakeServer]]:
    """A pool and ten claims, one of them called off, in a cloud that says nothing any more."""

    over = asyncio.Event()  # once the test has ended, so that no question is left to the collector of garbage

    async def hangs(self: MadeUpCloud, about: Any) -> Any:
        await over.wait()
        raise Unreachable("made-up", "the connection was closed")

    monkeypatch.setitem(PROVIDERS, "made-up", "tests.worker.made_up_cloud")
    monkeypatch.setattr(MadeUpCloud, "catalogue", hangs)
    monkeypatch.setattr(MadeUpCloud, "drift", hangs)
    monkeypatch.setattr(patient_catalogues, "PATIENCE_SECONDS", 0.05)
    claims = [a_launched_claim(f"claim-{number}") for number in range(9)]
    called_off = a_launched_claim(CALLED_OFF, **{names.CANCEL: "not now", names.CANCEL_BY: "alice"})
    listed = {POOLS: [a_listed_pool()], CLAIMS: [*claims, called_off]}
    async with opened(tmp_path, listed=listed) as (world, server):
        server.on(ITS_PATH, says(200, called_off))
        yield world, server
        over.set()


async def test_a_disruption_is_called_off_although_the_drift_of_no_claim_can_be_judged(
    silent: tuple[World, FakeServer],
) -> None:
    """The look waited minutes for the instance types and as long for each claim, and stood still with the cloud."""
    world, server = silent

    def tasks() -> list[Any]:
        claims = world.claims
        return [
            ClaimUpkeep(
                claims,
                world.catalogues,
                world.clock.now,
                reservation_labels=frozenset(),
                well_known=names.WELL_KNOWN_LABELS,
            ),
            CancelUpkeep("c", claims, world.notices, world.clock.now),
        ]

    upkeep = KeepUp(Snapshots(world.view, world.catalogues), tasks, None, world.clock.now, questions=unasked())
    keeping = asyncio.create_task(ActivityEnvironment().run(upkeep.keep_up))

    def answered() -> Json | None:
        written = [body for method, path, _, body, _ in server.asked if (method, path) == ("PATCH", ITS_PATH)]
        return next((body for body in written if names.REMEMBERED in body["metadata"].get("annotations", {})), None)

    change = await until(answered, words="the order is answered")
    await stop(keeping)

    said = change["metadata"]["annotations"]
    assert (said[names.CANCEL], memory_of(said).called_off) == (None, CalledOff(why="not now", by="alice"))


async def test_once_the_cloud_answers_again_so_does_the_next_question(
    silent: tuple[World, FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = silent
    answers = asyncio.Event()

    async def late(self: MadeUpCloud, about: Any) -> Any:
        await answers.wait()
        raise Unreachable("made-up", "the connection was closed")

    with monkeypatch.context() as hanging:
        hanging.setattr(MadeUpCloud, "catalogue", late)
        before = await looked(world)
    monkeypatch.setattr(MadeUpCloud, "catalogue", ITS_CATALOGUE)
    answers.set()

    async def has_types() -> bool:
        return bool((await looked(world)).catalogues["web"].types)

    assert before.catalogues["web"].error
    assert await until_answered(has_types, words="the types are known again")


async def test_a_pool_whose_types_cannot_be_had_says_so_and_is_asked_about_once(
    silent: tuple[World, FakeServer],
) -> None:
    world, _ = silent

    first, second = [await looked(world) for _ in range(2)]

    assert first.catalogues["web"].error == "instance types of NodePool web: the cloud does not answer"
    assert second.catalogues["web"].error == "instance types of NodePool web: the cloud still does not answer"


async def test_drift_that_hangs_hides_no_instance_types(
    silent: tuple[World, FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types that have to be asked for anew take longer than the moment that a remembered answer does."""
    world, _ = silent
    monkeypatch.setattr(patient_catalogues, "MOMENT_SECONDS", 0.0)

    async def asks(self: MadeUpCloud, pool: NodePool) -> Catalogue:
        for _ in range(9):  # turns of the event loop
            await asyncio.sleep(0)
        return await ITS_CATALOGUE(self, pool)

    monkeypatch.setattr(MadeUpCloud, "catalogue", asks)
    with pytest.raises(Unreachable):
        await world.catalogues.drift(world.view.snapshot().claims[CALLED_OFF])

    assert (await looked(world)).catalogues["web"].types
