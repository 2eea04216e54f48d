"""The record beyond Temporal's retention: each hour copied once, whoever does it, and read as if it were Temporal's."""

import asyncio
import gzip
import math
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.failures import CommandFailed
from dovetail.answers.record import history, kept
from dovetail.answers.record.entries import Entries, Entry, Period, moment_text
from dovetail.answers.record.kept import HOUR, Archive, keep_up, read_whole
from dovetail.answers.record.log import Wanted, log_from
from dovetail.answers.record.savings import savings_from
from dovetail.answers.record.trend import Trend
from dovetail.answers.serving import duties as serving
from dovetail.messages.workflow_types import TERMINATE_NODE
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import utc_moment
from dovetail.settings.settings import SettingsError, read_settings
from tests.cli.test_savings import DISRUPTION, LAUNCH
from tests.waiting import until

CLIENT: Any = SimpleNamespace(namespace="default")
START = 1_767_225_600  # 2026-01-01T00:00:00Z


def ended(hour: float, workflow: str, **more: Any) -> Entry:
    """Something that took ten minutes and ended so many hours after the start."""
    moment = START + hour * HOUR
    return replace(DISRUPTION, workflow=workflow, run="1", began=moment - 600.0, ended=moment, **more)


class Temporal:
    """What Temporal still has. `asked`: the conditions of all questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *entries: Entry, retention: float = 72.0 * HOUR) -> None:
        self.entries, self.asked, self.retention = list(entries), list[str](), retention
        monkeypatch.setattr(kept, "read_matching", self.matching)
        monkeypatch.setattr(kept, "_reach", self.reach)

    async def reach(self, _: object) -> float:
        return self.retention

    async def matching(self, _: object, cluster: str, condition: str, most: int) -> Entries:
        self.asked.append(condition)
        chosen = [entry for entry in self.entries if self._suits(entry, condition)]
        return Entries(entries=tuple(chosen[:most]), cut=len(chosen) > most)

    def _suits(self, entry: Entry, condition: str) -> bool:
        """As the visibility list answers: what has not ended has no CloseTime, which no comparison suits."""
        values = {
            "WorkflowType": {"termination": TERMINATE_NODE}.get(entry.kind, ""),
            "ExecutionStatus": "Running" if entry.ended is None else "Completed",
            "StartTime": moment_text(entry.began),
            "CloseTime": math.nan if entry.ended is None else entry.ended,
        }
        said = re.sub(r"CloseTime (<|>=) '([^']*)'", lambda m: f"CloseTime {m[1]} {utc_moment(m[2])!r}", condition)
        for word, sign in ((" AND ", " and "), (" OR ", " or "), (" = ", " == ")):
            said = said.replace(word, sign)
        return bool(eval(said, {}, values))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(FolderObjects(tmp_path / "kept"), "demo")


async def test_each_hour_is_kept_once_when_it_is_over_and_settled(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporal = Temporal(monkeypatch, ended(1.5, "demo/a"), ended(2.5, "demo/b"), retention=3.5 * HOUR)
    now = START + 3 * HOUR + 60

    assert await keep_up(CLIENT, archive, now) == 2, "the hours from 0 to 2; the third has not settled yet"
    assert await archive.hours() == {START, START + HOUR}
    assert await keep_up(CLIENT, archive, now) == 0
    assert len(temporal.asked) == 1, "nothing is asked where nothing is missing"
    assert await keep_up(CLIENT, archive, now + 600) == 1
    assert [e.workflow for e in (await archive.read(await archive.hours())).entries] == ["demo/a", "demo/b"]


async def test_two_who_keep_the_same_hour_write_the_same_bytes(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [ended(1.5, "demo/a"), ended(1.6, "demo/b")]
    other = Archive(FolderObjects(tmp_path / "other"), "demo")
    Temporal(monkeypatch, *entries)
    await keep_up(CLIENT, archive, START + 3 * HOUR)
    Temporal(monkeypatch, *reversed(entries))
    await keep_up(CLIENT, other, START + 3 * HOUR)

    one, two = [
        {file.relative_to(folder): file.read_bytes() for folder in [tmp_path / name] for file in folder.rglob("*.gz")}
        for name in ("kept", "other")
    ]
    assert one == two and len(one) > 2


async def test_what_temporal_has_forgotten_is_read_from_where_it_was_kept_and_nothing_comes_twice(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten, still, new = ended(1.5, "demo/a"), ended(2.5, "demo/b"), ended(5.5, "demo/c")
    running = replace(ended(4.0, "demo/d", outcome="running"), ended=None)
    Temporal(monkeypatch, forgotten, still)
    await keep_up(CLIENT, archive, START + 4 * HOUR)
    temporal = Temporal(monkeypatch, still, new, running)

    found = await read_whole(CLIENT, archive, Period(since=START))

    assert [entry.workflow for entry in found.entries] == ["demo/a", "demo/b", "demo/d", "demo/c"]
    assert found.entries[0] == forgotten, "with every field"
    assert not any(moment_text(START + HOUR) in question for question in temporal.asked), "kept hours are not asked"
    later = await read_whole(CLIENT, archive, Period(since=START + 2 * HOUR))
    assert [entry.workflow for entry in later.entries] == ["demo/b", "demo/d", "demo/c"]


async def test_ends_of_nodes_that_lived_in_a_time_are_found_whenever_they_began(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(name: str, began: float, over: float | None) -> Entry:
        closed = None if over is None else START + over * HOUR
        return replace(ended(0.0, name), kind="termination", claims=(name,), began=START + began * HOUR, ended=closed)

    before, held, within, running, after = (
        *(end("demo/before", 0.2, 0.9), end("demo/held", 0.5, 2.5), end("demo/within", 3.2, 3.4)),
        *(end("demo/running", 0.6, None), end("demo/after", 6.1, 6.2)),
    )
    other = ended(2.4, "demo/other", replacements=("late",))
    Temporal(monkeypatch, before, held, within, replace(other, began=START + 0.7 * HOUR))
    await keep_up(CLIENT, archive, START + 4 * HOUR)
    Temporal(monkeypatch, within, running, after)
    wanted = Period(since=START + HOUR, until=START + 5 * HOUR, ends=True)

    found = await read_whole(CLIENT, archive, wanted)

    assert [entry.workflow for entry in found.entries] == ["demo/within"]
    assert [entry.workflow for entry in found.ends] == ["demo/held", "demo/running", "demo/after"]
    assert (await read_whole(CLIENT, archive, replace(wanted, ends=False))).ends == ()


async def test_an_hour_that_was_kept_before_is_read_by_the_names_that_it_was_written_with(archive: Archive) -> None:
    """Documents spell their fields otherwise; what is stored stays as it was."""
    name = "demo/record/v1/2026-01-01/00.json.gz"
    entry = {"kind": "disruption", "workflow": "demo/a", "run": "1", "began": START + 1.5, "ended": START + 9.25}
    entry |= {"outcome": "done", "price_before": 0.5, "instance_type": "m5.large", "pod_names": ["shop/cart-1"]}
    body = {"format": kept.FORMAT, "cluster": "demo", "hour": "", "entries": [entry], "forgotten": 0}
    await archive.objects.put(name, gzip.compress(orjson.dumps(body)))

    [found] = (await archive.read([START])).entries

    assert (found.began, found.ended, found.price_before) == (START + 1.5, START + 9.25, 0.5)
    assert (found.instance_type, found.pod_names) == ("m5.large", ("shop/cart-1",))
    await archive.put(START + HOUR, [replace(found, saved_dollars=9.0)])
    written = gzip.decompress(await archive.objects.get("demo/record/v1/2026-01-01/01.json.gz") or b"")
    assert b"price_before" in written and b"saved_dollars" not in written, "it grows with time"
    assert (await archive.read([START + HOUR])).entries == (found,)


async def test_what_an_older_version_made_of_histories_is_made_anew_as_far_as_temporal_has_them(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their times were wrong where a hook had held an instance. What Temporal has forgotten stays as it was."""
    gone, held = (replace(ended(1.5, name), kind="termination", instance_gone=START + 1.0) for name in ("a", "b"))
    late, now = ended(2.5, "c"), START + 4 * HOUR
    monkeypatch.setattr(kept, "READING", 1)
    Temporal(monkeypatch, gone, held, late)
    await keep_up(CLIENT, archive, now)
    monkeypatch.setattr(kept, "READING", 2)
    right = replace(held, instance_gone=START + 1.5 * HOUR)
    temporal = Temporal(monkeypatch, right)
    fresh = Archive(archive.objects, "demo")

    counts = [await keep_up(CLIENT, fresh, now) for _ in range(2)]

    assert (await archive.read(await archive.hours())).entries == (gone, right, late)
    assert counts[0] > 0 == counts[1] and len(set(temporal.asked)) == len(temporal.asked), "each day once"


async def test_an_hour_of_a_newer_version_and_one_that_cannot_be_read_stay_as_they_are(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "READING", kept.READING + 1)
    Temporal(monkeypatch, ended(1.5, "a"))
    await keep_up(CLIENT, archive, START + 3 * HOUR)
    monkeypatch.undo()
    (tmp_path / "kept/demo/record/v1/2026-01-01/00.json.gz").write_bytes(b"of another format")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.gz")}
    Temporal(monkeypatch)

    assert await keep_up(CLIENT, Archive(archive.objects, "demo"), START + 3 * HOUR) == 0
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.gz")} == before


async def test_a_launch_is_joined_with_its_disruption_across_hours(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = replace(
        LAUNCH, workflow="demo/claim/web-2", claims=("web-2",), began=START + HOUR, ended=START + 1.2 * HOUR
    )
    move = replace(ended(2.5, "demo/a", replacements=("web-2",)), began=START + 0.9 * HOUR)
    Temporal(monkeypatch, move, launch)
    await keep_up(CLIENT, archive, START + 9 * HOUR)
    Temporal(monkeypatch)
    found = await read_whole(CLIENT, archive, Period(since=START))
    assert [(e.disruption, e.reason) for e in found.entries if e.kind == "launch"] == [("demo/a", "Underutilized")]


async def test_an_hour_that_is_missing_between_others_is_asked_of_temporal(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archive.put(START, [])
    await archive.put(START + 2 * HOUR, [ended(2.5, "demo/b")])
    Temporal(monkeypatch, ended(1.5, "demo/a"), ended(2.5, "demo/b"))
    found = await read_whole(CLIENT, archive, Period(since=START))
    assert [entry.workflow for entry in found.entries] == ["demo/a", "demo/b"]


async def test_an_hour_that_cannot_be_read_is_said_to_be_missing(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    Temporal(monkeypatch, ended(1.5, "demo/a"))
    await keep_up(CLIENT, archive, START + 3 * HOUR)
    (tmp_path / "kept/demo/record/v1/2026-01-01/01.json.gz").write_bytes(b"\x1f\x8b cut off")
    found = await read_whole(CLIENT, archive, Period(since=START))
    assert (found.entries, found.forgotten) == ((), 1)


async def test_of_a_day_with_more_than_can_be_read_at_once_each_hour_is_kept_by_itself(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour that has more than that is never kept in part."""
    monkeypatch.setattr(kept, "MOST_AT_ONCE", 1)
    entries = [ended(0.5, "demo/a"), ended(1.5, "demo/b"), ended(1.6, "demo/c"), ended(2.5, "demo/d")]
    Temporal(monkeypatch, *entries, retention=9 * HOUR)

    await keep_up(CLIENT, archive, START + 4 * HOUR)

    hours = await archive.hours()
    assert {START, START + 2 * HOUR} <= hours and START + HOUR not in hours
    assert [each.workflow for each in (await archive.read(hours)).entries] == ["demo/a", "demo/d"]


@pytest.mark.parametrize("gap", [0, 1, 2, 3])
async def test_hours_that_are_neither_kept_nor_in_temporal_any_more_are_said_to_be_missing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, gap: int
) -> None:
    """Of the time that is asked for, and since the first hour that was kept: what was before that nobody knows."""
    for hour in {-2, 0, 1, 2, 3} - {gap}:
        await archive.put(START + hour * HOUR, [ended(hour + 0.5, f"demo/{hour}")])
    lost = ended(gap + 0.5, f"demo/{gap}")
    period = Period(since=START, until=START + 4 * HOUR)

    async def answers(*entries: Entry, retention: float) -> tuple[Any, Any, Any]:
        Temporal(monkeypatch, *entries, retention=retention)
        found, now = await read_whole(CLIENT, archive, period), START + 4.0 * HOUR
        trend = Trend()
        trend.fill(found, Snapshot(now=now))
        wanted = Wanted(period=period)
        return savings_from("demo", period, found, now), log_from("demo", wanted, found, now), trend.answer(now)

    has = await answers(lost, retention=math.inf)
    lacks = await answers(retention=72.0 * HOUR)

    words = "1 hour of that time was not kept before Temporal forgot it: what happened in it is not counted"
    assert [words in each.notes for each in (*has[:2], *lacks[:2])] == [False, False, True, True]
    assert (has[0].partial, lacks[0].partial, has[0].total.moves, lacks[0].total.moves) == (False, True, 4, 3)
    assert (has[2].partial, lacks[2].partial) == (False, True) and "at least" in lacks[0].head[1]
    assert "at least" in lacks[1].notes[-1] and "at least" not in has[1].notes[-1]


async def test_the_history_of_a_node_that_temporal_has_forgotten_is_told_from_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    old = replace(DISRUPTION, began=now - 40 * 86400.0, ended=now - 40 * 86400.0 + 60.0)
    await Archive(FolderObjects(tmp_path), "demo").put(int(old.began // HOUR) * HOUR, [old])

    async def nothing(*_: object) -> None:
        raise CommandFailed("n1: its retention has passed")

    monkeypatch.setattr(history, "stories_of", nothing)
    settings = read_settings({"CLUSTER_NAME": "demo", "DOVETAIL_RECORD": str(tmp_path)})
    answer = await history.stories_or_kept(CLIENT, settings, "n1", None)
    assert [line.text for line in answer.stories[0].lines] == [
        "disruption of n1, for Underutilized, 4 pods, $0.5000/h → $0.1000/h",
        "done",
    ]
    assert answer.notes == (history.NOTE,)
    with pytest.raises(CommandFailed, match="retention has passed"):
        await history.stories_or_kept(CLIENT, settings, "n2", None)


async def test_a_worker_keeps_the_record_where_the_setting_says_where_and_temporal_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Temporal(monkeypatch, ended(1.5, "demo/a"), retention=4 * HOUR)
    monkeypatch.setattr(serving, "first_look", lambda identity: 0.0)
    monkeypatch.setattr(serving, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(serving, "time", SimpleNamespace(time=lambda: START + 4.5 * HOUR))
    settings = read_settings({"CLUSTER_NAME": "demo", "DOVETAIL_RECORD": str(tmp_path)})
    presence: Any = SimpleNamespace(client=None, is_away=False)
    assert serving.duties(settings.model_copy(update={"record": ""}), presence) == {}
    [work] = serving.duties(settings, presence).values()

    keeping = asyncio.ensure_future(work())
    await asyncio.sleep(0.05)
    assert not list(tmp_path.iterdir()), "nobody can be asked yet"
    presence.client = CLIENT
    await until(lambda: len(list(tmp_path.rglob("*.json.gz"))) == 3 or None, words="three hours are kept")
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping


def test_workers_look_at_moments_of_their_own() -> None:
    moments = {serving.first_look(f"dovetail/0.1.0/{number}@pod-{number}") for number in range(20)}
    assert len(moments) > 15 and max(moments) <= serving.FIRST_SECONDS + serving.LOOK_SECONDS


@pytest.mark.parametrize("place", ["record", "s3://", "s3://Bucket", "https://x/y"])
def test_a_place_that_is_neither_a_folder_nor_a_bucket_is_refused(place: str) -> None:
    with pytest.raises(SettingsError, match="DOVETAIL_RECORD"):
        read_settings({"DOVETAIL_RECORD": place})
