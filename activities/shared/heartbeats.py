"""Sends the heartbeats of every activity, and with them how far it has come.

An interceptor of every worker. A heartbeat proves that the process lives: with a heartbeat timeout of 10 s a killed
worker costs 10 to 11 s at any step, without heartbeats the whole start-to-close timeout. A step says how far it is with
`report`; the heartbeat carries the latest text, and `temporal workflow describe` shows it. Every activity is
`async def`: a plain function would block the event loop, which sends the heartbeats, and with it the worker.
"""

import asyncio
import contextlib
from contextvars import ContextVar
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.activities.shared.temporal_errors import translate

HEARTBEAT_SECONDS = 2.5

_progress: ContextVar[list[str] | None] = ContextVar("progress", default=None)


def report(text: str) -> None:
    """Say how far the running step has come; shown with its next heartbeat."""
    latest = _progress.get()
    if latest is not None:
        latest[:] = [text]


class HeartbeatInterceptor(Interceptor):
    """Puts heartbeats around every activity."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the next interceptor of the chain."""
        return _HeartbeatInbound(next)


class _HeartbeatInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        latest: list[str] = []
        token = _progress.set(latest)
        heartbeats = asyncio.create_task(_send_heartbeats(latest))
        try:
            return await super().execute_activity(input)
        except Exception as error:
            translated = translate(error)
            if translated is error:
                raise
            raise translated from error
        finally:
            heartbeats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeats
            _progress.reset(token)


async def _send_heartbeats(latest: list[str]) -> None:
    while True:
        activity.heartbeat(*latest)
        await asyncio.sleep(HEARTBEAT_SECONDS)
