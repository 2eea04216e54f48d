"""Does Temporal answer this worker?

The worker asks for a description of the Scheduler, beside all steps. Such a call takes the same path as every step,
through the frontend and the history service to the database, and writes nothing. Any answer about the workflow counts,
even that it does not exist. No error counts as an answer, whatever its kind, because a server that refuses this worker
hands it no steps either. One missed answer is a blip: Temporal is away after eight seconds without any.

While it answers, one call waits for the end of the Scheduler, on the same path. The server answers it after nine
seconds that there is none yet, which is as good as a description, and a connection that breaks says so at once. So many
clusters ask little of a server.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import HistoryEventFilterType
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from dovetail.messages.workflow_ids import scheduler_id

LOOK_SECONDS: Final = 5.0  # between two questions where the end of the Scheduler cannot be waited for
HOLD_SECONDS: Final = 10.0  # for that wait; the server ends it a second before
ANSWERED_SECONDS: Final = 9.5  # by then it has been answered
CLOSE: Final = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
AGAIN_SECONDS: Final = 1.0  # after an answer that did not come
PROBE_SECONDS: Final = 3.0
AWAY_AFTER: Final = 8.0  # without an answer; a notice of two minutes leaves time for that

_log = logging.getLogger(__name__)


class TemporalPresence:
    """What this process knows about that. Without a client, Temporal counts as not answering."""

    def __init__(self, cluster: str, now: Callable[[], float] = time.monotonic) -> None:
        self.client: Client | None = None
        self._scheduler, self._now = scheduler_id(cluster), now
        self.problem = "not connected"  # with the last question that was not answered
        self._missed_since: float | None = None
        self._away, self._returned = asyncio.Event(), asyncio.Event()

    def use(self, client: Client) -> None:
        """Ask through this client from now on."""
        self.client = client

    def connected(self) -> Client:
        """The client of this moment; no step runs before there is one."""
        if self.client is None:
            raise RuntimeError("there is no client of Temporal yet")
        return self.client

    @property
    def is_away(self) -> bool:
        """Whether it has been silent for so long that what cannot wait is done without it."""
        return self._away.is_set()

    @property
    def silent_seconds(self) -> float:
        """How long Temporal has not answered; 0 while it does."""
        return 0.0 if self._missed_since is None else self._now() - self._missed_since

    def trouble(self) -> str:
        """Why it is away, for people; empty while it is not."""
        if not self.is_away:
            return ""
        return f"Temporal is away: no answer for {self.silent_seconds:.0f} s: {self.problem}"

    async def watch(self) -> None:
        while True:
            if await self.look():
                await self.until_doubtful()
            else:
                await asyncio.sleep(AGAIN_SECONDS)

    async def until_doubtful(self) -> None:
        """Return when it is time to ask again: the Scheduler has ended, or the wait for that has."""
        began = self._now()
        while await self._waits():
            began = self._now()
        await asyncio.sleep(max(0.0, LOOK_SECONDS - (self._now() - began)))

    async def look(self) -> bool:
        """Ask now; whether it answers."""
        began, problem = self._now(), await self._ask()
        if problem:
            self.miss(problem, began)
        else:
            self._answered()
        return not problem

    def miss(self, problem: str, since: float | None = None) -> None:
        """Note that it did not answer, asked at that moment."""
        self.problem = problem
        if self._missed_since is None:
            self._missed_since = self._now() if since is None else since
        if not self.is_away and self.silent_seconds >= AWAY_AFTER:
            self._away.set()
            _log.warning("%s; warnings are answered and leaving nodes are drained without it", self.trouble())

    def _answered(self) -> None:
        if self.is_away:
            _log.warning("Temporal answers again, after %.0f s", self.silent_seconds)
            self._away.clear()
            self._returned.set()
            self._returned = asyncio.Event()
        self._missed_since = None

    async def until_away(self) -> None:
        await self._away.wait()

    async def sleep_or_return(self, seconds: float) -> bool:
        """Sleep this long, or until it is back after it was away; whether it is."""
        returned = self._returned
        try:
            async with asyncio.timeout(seconds):
                await returned.wait()
        except TimeoutError:
            return False
        return True

    async def _waits(self) -> bool:
        """Whether it answers, in time, that the Scheduler has not ended."""
        client, began = self.client, self._now()
        if client is None:
            return False
        request = GetWorkflowExecutionHistoryRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=self._scheduler),
            maximum_page_size=1,
            wait_new_event=True,
            history_event_filter_type=CLOSE,
            skip_archival=True,
        )
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                found = await client.workflow_service.get_workflow_execution_history(
                    request, retry=False, timeout=timedelta(seconds=HOLD_SECONDS)
                )
        except (RPCError, TimeoutError, RuntimeError):
            if self._now() - began > ANSWERED_SECONDS:
                self._missed_since = began  # nothing was heard since, which counts if the next question is missed too
            return False
        return not found.history.events

    async def _ask(self) -> str:
        """What is wrong; empty where it answers."""
        client = self.client
        if client is None:
            return self.problem
        request = DescribeWorkflowExecutionRequest(
            namespace=client.namespace, execution=WorkflowExecution(workflow_id=self._scheduler)
        )
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await client.workflow_service.describe_workflow_execution(
                    request, retry=False, timeout=timedelta(seconds=PROBE_SECONDS)
                )
        except RPCError as error:
            return "" if _says_that_there_is_none(error) else str(error) or error.status.name
        except (TimeoutError, RuntimeError) as error:
            return str(error) or f"no answer within {PROBE_SECONDS:.0f} s"
        return ""


async def silence_of(client: Client, cluster: str) -> str:
    """Why Temporal does not answer, asked once; empty where it does."""
    presence = TemporalPresence(cluster)
    presence.use(client)
    return "" if await presence.look() else presence.problem


def _says_that_there_is_none(error: RPCError) -> bool:
    """Whether the workflow is not there, rather than its namespace."""
    details = error.grpc_status.details
    return error.status == RPCStatusCode.NOT_FOUND and not any("Namespace" in each.type_url for each in details)
