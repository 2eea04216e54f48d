"""A field of the record is read from some history, kept beyond Temporal's retention, and shown by `dovetail log`."""

from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowExecutionStatus, WorkflowHistory

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.facts import read_run
from dovetail.answers.record.kept import Archive, read_entries
from dovetail.answers.record.log import LogAnswer, log_text
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.outcomes import DisruptionRecord, LaunchOutcome, TerminationOutcome
from dovetail.messages.plans import Share
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.workflows.converter import DATA_CONVERTER
from tests.cli.test_history_events import CONVERTER, NEW, TARGETS, begun, ended, event
from tests.cli.test_savings import DISRUPTION, LAUNCH
from tests.replay.recorded import HISTORIES, read_history, recorded_files

ENDS: Final = {
    "completed": "COMPLETED",
    "failed": "FAILED",
    "continued": "CONTINUED_AS_NEW",
    "terminated": "TERMINATED",
}
COUNTED_LATER: Final = {"saved_dollars"}
# What `log` has as a document alone; each is used to filter, to join or to add up.
ONLY_IN_DOCUMENTS: Final = {
    "run",
    "uid",
    "method",
    "pod_names",
    "price_before",
    "price_after",
    "disruption",
    "drained",
    "instance_gone",
    "launched",
    "expires",
    "on_demand_since",
    "shares",
}


class Recorded:
    """Temporal with a workflow for each recorded history of a disruption, a launch or a termination."""

    data_converter = DATA_CONVERTER

    def __init__(self, **histories: Sequence[HistoryEvent]) -> None:
        if histories:
            self.histories = {f"DisruptNodes/{name}": events for name, events in histories.items()}
            return
        files = [f for f in recorded_files() if f.parent.name in ("DisruptNodes", "LaunchNode", "TerminateNode")]
        recorded = {str(file.relative_to(HISTORIES)): read_history(file).events for file in files}
        made = {
            "LaunchNode/of a type": launched(),
            "TerminateNode/of a type": left(),
            "DisruptNodes/two": of_two_pools(),
        }
        self.histories = {**recorded, "DisruptNodes/called off": called_off(), **made}

    async def list_workflows(self, query: str, limit: int) -> Any:
        for name, events in self.histories.items():
            end = read_run(events).ended
            yield SimpleNamespace(
                id=name,
                run_id=f"run of {name}",
                workflow_type=name.partition("/")[0],
                start_time=datetime.fromtimestamp(1.0, UTC),
                close_time=datetime.fromtimestamp(9.0, UTC) if end is not None else None,
                status=WorkflowExecutionStatus[ENDS[end.how] if end is not None else "RUNNING"],
            )

    def get_workflow_handle(self, name: str, *, run_id: str) -> Any:
        async def fetch_history() -> WorkflowHistory:
            return WorkflowHistory(name, self.histories[name])

        return SimpleNamespace(fetch_history=fetch_history)


def called_off() -> Sequence[HistoryEvent]:
    """With prices and shares, which recorded commands do not say."""
    shares = (Share(namespace="shop", share=1.0),)
    record = DisruptionRecord(outcome="cancelled", reason="Drifted", message="not now", by="ann")
    return [begun(replacements=(NEW,), price=0.4, savings=0.2, asked_by="bob", shares=shares), ended(record)]


def of_two_pools() -> Sequence[HistoryEvent]:
    return [begun(targets=(TARGETS[0], replace(TARGETS[0], node="n9", claim="db-9", claim_uid="u9", pool="db")))]


def launched() -> Sequence[HistoryEvent]:
    """As an instance that a recorded cloud had no type for."""
    outcome = LaunchOutcome(kind="launched", instance_type="m5.large", zone="a", capacity_type="spot")
    return answering("launch_instance", outcome)


def left() -> Sequence[HistoryEvent]:
    """With what the record needs of a claim that is gone."""
    claim = ClaimRef(name="web-1", uid="u1", pool="web")
    return answering("begin_departure", Departure(claim=claim, launched=1.0, expires=2.0, on_demand_since=1.5))


def answering(step: str, answer: object) -> Sequence[HistoryEvent]:
    """The workflow of a claim whose first step has answered so."""
    start, asked = event("workflow_execution_started"), event("activity_task_scheduled")
    given = ClaimInput(cluster="demo", claim=ClaimRef(name="web-1", uid="u1", pool="web"))
    start.workflow_execution_started_event_attributes.input.payloads.extend(CONVERTER.to_payloads([given]))
    asked.event_id, asked.activity_task_scheduled_event_attributes.activity_type.name = 5, step
    done = event("activity_task_completed", scheduled_event_id=5)
    done.activity_task_completed_event_attributes.result.payloads.extend(CONVERTER.to_payloads([answer]))
    return [start, asked, done]


async def entries() -> Entries:
    client: Any = Recorded()
    return await read_entries(client, "demo", Period(since=0.0))


async def test_every_field_is_read_from_some_history() -> None:
    found = (await entries()).entries

    empty = {each.name: each.default for each in fields(Entry) if each.default is not MISSING}
    filled = {name for entry in found for name in empty if getattr(entry, name) != empty[name]}
    assert set(empty) - filled == COUNTED_LATER


async def test_every_field_is_kept_and_read_again(tmp_path: Path) -> None:
    archive = Archive(FolderObjects(tmp_path), "demo")
    found = sorted((await entries()).entries, key=lambda entry: (entry.workflow, entry.run))

    await archive.put(0, found)

    assert (await archive.read([0])).entries == tuple(found)


@pytest.mark.parametrize("name", [each.name for each in fields(Entry)])
def test_every_field_is_shown_or_is_on_the_list_of_those_that_documents_have_alone(name: str) -> None:
    def shown(entry: Entry) -> str:
        return log_text(LogAnswer(cluster="demo", since="", until=None, entries=(entry,)), wide=True)

    changes = [replace(entry, **{name: other}) for entry in (DISRUPTION, LAUNCH) for other in others(entry, name)]
    differs = any(shown(changed) not in (shown(DISRUPTION), shown(LAUNCH)) for changed in changes)
    assert differs == (name not in ONLY_IN_DOCUMENTS)


def others(entry: Entry, name: str) -> tuple[Any, ...]:
    """Other values of a field, of its type."""
    if name in ("kind", "outcome"):
        return ("termination",)
    value = getattr(entry, name)
    if isinstance(value, tuple):
        return (("another-1",),)
    if isinstance(value, str):
        return ("another",)
    return (12_345,) if isinstance(value, int) else (12_345.5,)


async def test_a_disruption_that_is_done_has_the_nodes_that_left_and_their_share_of_the_dollars() -> None:
    """Where several empty nodes leave together, those to which a pod came meanwhile stay, as those of a paused pool."""
    targets = tuple(
        replace(TARGETS[0], node=f"n{n}", claim=f"web-{n}", claim_uid=f"u{n}", pool=f"pool-{n}", pods=(f"p{n}",))
        for n in range(5)
    )
    begin = begun(reason="Empty", method="emptiness", targets=targets, price=1.0, savings=0.5)
    done = DisruptionRecord(outcome="done", reason="Empty", deleted=("web-1",))
    client: Any = Recorded(partly=[begin, ended(done)], refused=[begin, ended(replace(done, outcome="refused"))])

    partly, refused = (await read_entries(client, "demo", Period(since=0.0))).entries

    assert (partly.nodes, partly.claims, partly.pods) == (("n1",), ("web-1",), 1)
    assert (partly.pool, refused.pool) == ("pool-1", "pool-0")
    assert (partly.pools, refused.pools) == ((), tuple(f"pool-{n}" for n in range(5)))
    assert (partly.price_before, partly.price_after, partly.saved) == pytest.approx((0.2, 0.1, 0.1))
    assert (len(refused.nodes), refused.pods, refused.saved) == (5, 5, 0.5)


def leaving(departure: Departure, at: float, ended: TerminationOutcome) -> Sequence[HistoryEvent]:
    """A termination whose second step began at second 100, in its second attempt, and answered at that second."""
    start, *first = answering("begin_departure", departure)
    _, asked, done = answering("terminate_instance", ended)
    asked.event_id = done.activity_task_completed_event_attributes.scheduled_event_id = 8
    looked = event("activity_task_started", scheduled_event_id=8)
    looked.activity_task_started_event_attributes.attempt = 2
    for each, second in ((asked, 90.0), (looked, 100.0), (done, at)):
        each.event_time.FromNanoseconds(int(second * 1e9))
    return [start, *first, asked, looked, done]


LAUNCHED: Final = Departure(claim=ClaimRef(name="web-1", uid="u1", pool="web"), provider_id="test://1", launched=1.0)


@pytest.mark.parametrize(
    ("departure", "ended", "moments"),
    [
        (LAUNCHED, TerminationOutcome(asked=21_690.0, gone=21_698.5), (21_690.0, 21_698.5)),
        (LAUNCHED, TerminationOutcome(), (90.0, 21_700.0)),
        (replace(LAUNCHED, provider_id=""), TerminationOutcome(), (90.0, None)),
        (replace(LAUNCHED, provider_id=""), TerminationOutcome(asked=95.0, gone=96.0), (95.0, 96.0)),
    ],
    ids=["a hook held it", "an older history", "nothing was launched", "launched after all"],
)
async def test_a_termination_says_when_its_instance_was_told_to_end_and_when_it_ended(
    departure: Departure, ended: TerminationOutcome, moments: tuple[float, float | None]
) -> None:
    """One attempt holds hooks and then looks until the instance is gone: its start says nothing of the end."""
    client: Any = Recorded()
    client.histories = {"TerminateNode/of web-1": leaving(departure, 21_700.0, ended)}

    [found] = (await read_entries(client, "demo", Period(since=0.0))).entries

    assert (found.drained, found.instance_gone) == moments
