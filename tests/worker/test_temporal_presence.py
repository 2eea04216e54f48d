"""When Temporal counts as away: after eight seconds without an answer, whatever the failure, and never for a blip."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as AnyDetail
from temporalio.api.common.v1 import GrpcStatus
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.connection import presence
from dovetail.connection.configuration import TemporalAway, TemporalUnusable
from dovetail.connection.presence import AWAY_AFTER, CLOSE, HOLD_SECONDS, TemporalPresence
from dovetail.worker.absence import connecting
from dovetail.worker.absence.connecting import until_connected


@dataclass
class Server:
    """Answers as it is told to; `ends` says how each wait for the Scheduler's end goes, and the last one never ends."""

    error: Exception | None = None
    asked: int = 0
    namespace: str = "default"
    ends: list[Callable[[], Any]] = field(default_factory=list)
    waited: int = 0
    waits_on: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def workflow_service(self) -> "Server":
        return self

    async def describe_workflow_execution(self, request: Any, **options: Any) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error

    async def get_workflow_execution_history(self, request: Any, **options: Any) -> Any:
        assert request.wait_new_event and request.history_event_filter_type == CLOSE
        self.waited += 1
        if not self.ends:
            self.waits_on.set()
            await asyncio.Event().wait()
        return self.ends.pop(0)()


@dataclass
class Stage:
    server: Server = field(default_factory=Server)
    clock: float = 0.0

    def __post_init__(self) -> None:
        self.presence = TemporalPresence("c", lambda: self.clock)
        self.presence.client = self.server  # type: ignore[assignment]

    async def pass_by(self, seconds: int) -> None:
        """Asked once a second."""
        for _ in range(seconds):
            self.clock += 1.0
            await self.presence.look()


def refused(status: RPCStatusCode, detail: str = "") -> RPCError:
    details = [AnyDetail(type_url=f"type.googleapis.com/{detail}")] if detail else []
    return RPCError("no", status, GrpcStatus(details=details).SerializeToString())


UNAVAILABLE = refused(RPCStatusCode.UNAVAILABLE)


async def test_a_blip_is_no_absence_and_silence_is() -> None:
    stage = Stage()
    await stage.pass_by(1)
    stage.server.error = UNAVAILABLE
    await stage.pass_by(int(AWAY_AFTER) - 1)
    assert not stage.presence.is_away and stage.presence.silent_seconds > 0
    stage.server.error = None
    await stage.pass_by(1)
    assert stage.presence.silent_seconds == 0

    stage.server.error = UNAVAILABLE
    await stage.pass_by(int(AWAY_AFTER) + 1)
    assert stage.presence.is_away
    assert stage.presence.trouble() == "Temporal is away: no answer for 8 s: no"

    stage.server.error = None
    await stage.pass_by(1)
    assert (stage.presence.is_away, stage.presence.trouble(), stage.presence.silent_seconds) == (False, "", 0)


async def test_what_a_process_does_before_it_first_asks_counts_for_nothing() -> None:
    """To read a large cluster takes longer than an absence."""
    stage = Stage(Server(UNAVAILABLE))
    stage.clock = 60.0
    await stage.pass_by(1)
    assert not stage.presence.is_away


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (refused(RPCStatusCode.NOT_FOUND), False),  # no Scheduler yet: an answer like any other
        (refused(RPCStatusCode.NOT_FOUND, "temporal.api.errordetails.v1.NamespaceNotFoundFailure"), True),
        (refused(RPCStatusCode.PERMISSION_DENIED), True),  # nor does it hand out steps
        (refused(RPCStatusCode.UNAUTHENTICATED), True),
        (refused(RPCStatusCode.RESOURCE_EXHAUSTED), True),
        (refused(RPCStatusCode.INTERNAL), True),
        (TimeoutError(), True),
        (RuntimeError("the connection is closed"), True),
    ],
)
async def test_what_counts_as_an_answer(error: Exception, away: bool) -> None:
    stage = Stage(Server(error))
    await stage.pass_by(int(AWAY_AFTER) + 1)
    assert stage.presence.is_away is away


def nothing_yet() -> GetWorkflowExecutionHistoryResponse:
    return GetWorkflowExecutionHistoryResponse()


def ended() -> GetWorkflowExecutionHistoryResponse:
    found = GetWorkflowExecutionHistoryResponse()
    found.history.events.add()
    return found


async def test_while_it_answers_nothing_but_the_end_of_the_scheduler_is_asked_for() -> None:
    stage = Stage(Server(ends=[nothing_yet] * 20))
    watching = asyncio.create_task(stage.presence.watch())
    await stage.server.waits_on.wait()
    watching.cancel()

    assert stage.server.asked == 1


@pytest.mark.parametrize("how", ["broken", "ended", "refused"])
async def test_a_wait_that_ends_otherwise_is_followed_by_a_question(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And never by one after the other without a pause, where the server ends every wait at once."""
    pauses = list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    def end() -> GetWorkflowExecutionHistoryResponse:
        if how == "ended":
            return ended()
        raise UNAVAILABLE if how == "broken" else refused(RPCStatusCode.PERMISSION_DENIED)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    stage = Stage(Server(ends=[nothing_yet, end]))
    await stage.presence.until_doubtful()

    assert (stage.server.waited, pauses, stage.presence.silent_seconds) == (2, [presence.LOOK_SECONDS], 0)


async def test_a_wait_that_broke_after_a_while_is_followed_by_a_question_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses, stage = list[float](), Stage()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    def broken() -> None:
        stage.clock += 6.0
        raise UNAVAILABLE

    monkeypatch.setattr(asyncio, "sleep", sleep)
    stage.server.ends = [broken]
    await stage.presence.until_doubtful()

    assert pauses == [0.0]


async def test_a_server_that_lets_a_wait_and_the_next_question_go_unanswered_is_away() -> None:
    """As behind a network that swallows what is sent: it has said nothing since the wait began."""
    stage = Stage()

    def unanswered() -> None:
        stage.clock += HOLD_SECONDS - 0.01  # the deadline of the call may come before ours
        raise TimeoutError

    stage.server.ends = [unanswered]
    await stage.presence.until_doubtful()
    assert not stage.presence.is_away, "one missed answer is a blip"

    stage.server.error = TimeoutError()
    await stage.presence.look()
    assert stage.presence.is_away


async def test_a_wait_that_was_not_answered_is_forgotten_with_the_next_answer() -> None:
    stage = Stage()

    def unanswered() -> None:
        stage.clock += HOLD_SECONDS
        raise TimeoutError

    stage.server.ends = [unanswered]
    await stage.presence.until_doubtful()
    await stage.presence.look()

    assert (stage.presence.is_away, stage.presence.silent_seconds) == (False, 0)


async def test_whoever_sleeps_is_woken_by_a_return_and_by_nothing_else() -> None:
    stage = Stage()
    await stage.pass_by(1)
    assert await stage.presence.sleep_or_return(0.01) is False
    stage.server.error = UNAVAILABLE
    await stage.pass_by(int(AWAY_AFTER) + 1)
    sleeping = asyncio.create_task(stage.presence.sleep_or_return(60.0))
    await asyncio.sleep(0)
    assert not sleeping.done()
    stage.server.error = None
    await stage.pass_by(1)
    assert await sleeping is True


async def test_a_start_waits_for_a_server_that_does_not_answer_and_not_for_one_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage, tries = Stage(), list[int]()

    async def nothing_missing(client: Client) -> None:
        return None

    async def connect() -> Any:
        tries.append(1)
        if len(tries) < 4:
            raise TemporalAway("no Temporal server at nowhere:7233: refused (set TEMPORAL_ADDRESS)")
        return stage.server

    monkeypatch.setattr(connecting, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(connecting, "register_search_attributes", nothing_missing)

    found: Any = await until_connected(connect, stage.presence, asyncio.Event())
    assert found is stage.server
    said = [record.message for record in caplog.records if "waits until it answers" in record.message]
    assert said == [
        "no Temporal server at nowhere:7233: refused (set TEMPORAL_ADDRESS); this worker waits until it answers"
    ]

    async def useless() -> Any:
        raise TemporalUnusable("search attributes are missing")

    with pytest.raises(TemporalUnusable, match="search attributes"):
        await until_connected(useless, stage.presence, asyncio.Event())


async def test_a_process_that_is_to_stop_waits_for_no_server() -> None:
    stop = asyncio.Event()
    stop.set()

    async def never() -> Any:
        raise AssertionError("it is not asked for")

    assert await until_connected(never, Stage().presence, stop) is None
