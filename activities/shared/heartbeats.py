"""Beats for every activity, and tells how far it has come.

An interceptor of every worker. A beat proves that the process lives: with a heartbeat timeout of 10 s a killed worker
costs 10 to 11 s at any step, without beats the whole start-to-close. A step says how far it is with `report`; the beat
carries the latest text, and `temporal workflow describe` shows it. The trap avoided: beating from the event loop for an
activity that is a plain function blocks the worker for 10 s, so every activity here is `async def`.
"""

import asyncio
import contextlib
from contextvars import ContextVar
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from dovetail.activities.shared.temporal_errors import translate

BEAT_SECONDS = 2.5

_progress: ContextVar[list[str] | None] = ContextVar("progress", default=None)


def report(text: str) -> None:
    """Say how far the running step has come; shown with its next beat."""
    latest = _progress.get()
    if latest is not None:
        latest[:] = [text]


class HeartbeatInterceptor(Interceptor):
    """Installs the beat around every activity."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the next interceptor of the chain."""
        return _BeatingInbound(next)


class _BeatingInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        latest: list[str] = []
        token = _progress.set(latest)
        beats = asyncio.create_task(_beat(latest))
        try:
            return await super().execute_activity(input)
        except Exception as error:
            translated = translate(error)
            if translated is error:
                raise
            raise translated from error
        finally:
            beats.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beats
            _progress.reset(token)


async def _beat(latest: list[str]) -> None:
    while True:
        activity.heartbeat(*latest)
        await asyncio.sleep(BEAT_SECONDS)
