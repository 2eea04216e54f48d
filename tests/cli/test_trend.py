"""The last day of price and nodes: what a worker sees itself, what the record adds, and that it stays a day."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import pytest_asyncio

from dovetail.answers.record import kept
from dovetail.answers.record.entries import Entries, Entry
from dovetail.answers.record.trend import MOST_POINTS, STEP_SECONDS, Trend
from dovetail.answers.serving import duties
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.connection.presence import TemporalPresence
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import SettingsError, read_settings
from dovetail.wiring.world import open_world
from tests.cli.test_explain_node import OPEN, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, settings_of

DAY = 86400.0


@pytest_asyncio.fixture(loop_scope="session")
async def source(tmp_path: Path) -> AsyncIterator[WorkerSource]:
    """Of a world with one node, whose price is known."""
    simulated = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node())
    world = await open_world(settings_of(simulated))
    yield WorkerSource(settings_of(simulated), world, TemporalPresence("demo"))
    await world.close()


async def the_fleet(source: WorkerSource) -> Snapshot:
    found = await source.priced()
    assert found is not None
    return found


def gone_in_between(fleet: Snapshot) -> Entry:
    """A node of the same kind that stood from six hours ago until two hours ago."""
    [claim] = fleet.claims.values()
    labels = claim.labels
    return Entry(
        kind="termination",
        workflow="demo/claim/old",
        run="r",
        began=fleet.now - 2.1 * 3600,
        ended=fleet.now - 2 * 3600,
        outcome="terminated",
        pool=labels["karpenter.sh/nodepool"],
        claims=("old",),
        instance_type=labels["node.kubernetes.io/instance-type"],
        zone=labels["topology.kubernetes.io/zone"],
        capacity_type=labels["karpenter.sh/capacity-type"],
        launched=fleet.now - 6 * 3600,
        instance_gone=fleet.now - 2 * 3600,
    )


async def test_what_stood_before_the_worker_began_is_added_from_the_record(source: WorkerSource) -> None:
    fleet, past = await the_fleet(source), Trend()
    past.look(fleet)
    past.fill(Entries(entries=(gone_in_between(fleet),)), fleet)

    found = past.answer(fleet.now)
    by_hours_ago = {round((fleet.now - point.at) / 3600, 2): point for point in found.points}

    alone, both = by_hours_ago[1.0], by_hours_ago[4.0]
    assert (both.nodes, alone.nodes, found.points[-1].nodes) == (2, 1, 1)
    assert both.price == pytest.approx(2 * alone.price) and alone.price > 0
    assert (found.partial, found.seen_since) == (False, fleet.now)


async def test_a_day_is_kept_and_no_more(source: WorkerSource) -> None:
    fleet, past = await the_fleet(source), Trend()
    for step in range(2 * MOST_POINTS):
        past.look(replace(fleet, now=fleet.now + step * STEP_SECONDS))

    now = fleet.now + (2 * MOST_POINTS - 1) * STEP_SECONDS
    found = past.answer(now)
    assert len(found.points) == MOST_POINTS and found.points[0].at > now - DAY
    assert not found.partial, "it has seen the whole day itself"


async def test_the_record_is_read_again_until_temporal_answers_and_then_never(
    source: WorkerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, past = [], Trend()

    async def connected(_: object) -> None:
        """To nobody: what would be read is made up."""

    async def entries(*given: Any) -> Entries:
        asked.append(given)
        if len(asked) < 2:
            raise TimeoutError("Temporal does not answer")
        return Entries(entries=(), cut=True)

    monkeypatch.setattr(WorkerSource, "temporal", connected)
    monkeypatch.setattr(kept, "entries_of", entries)
    for _ in range(4):
        await duties.look_at_trend(source, past)

    assert len(asked) == 2 and past.is_filled
    found = past.answer(source.opened.clock.now())
    assert found.partial, "the record was longer than what is read of it"
    assert len(found.points) >= MOST_POINTS, "the day before the first look is there"


async def test_a_workflow_is_linked_where_a_setting_names_the_web_ui(source: WorkerSource) -> None:
    source.presence.client = MagicMock(namespace="our space")
    links = []
    for ui in ("", "https://temporal.example/"):
        source.settings = source.settings.model_copy(update={"temporal_ui": ui})
        links.append(source._workflows())

    assert links == ["", "https://temporal.example/namespaces/our%20space/workflows/"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "temporal.example", "//temporal.example"])
def test_no_other_address_than_one_of_the_web_becomes_a_link(address: str) -> None:
    with pytest.raises(SettingsError, match="DOVETAIL_TEMPORAL_UI"):
        read_settings({"DOVETAIL_TEMPORAL_UI": address})
