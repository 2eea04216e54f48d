"""Answers the cloud's warnings in this process while Temporal is away.

It calls the steps of AnswerInterruption unchanged. Their effect is durable without Temporal: the claim's deletion is
stored by the API server, and the Caretaker, or a worker that stands in for Temporal, continues from it. So a message
may be acknowledged after a direct answer just as after a workflow's start. A warning that is answered both ways is
answered once: a claim is deleted by its UID, and one that is already being deleted is left alone.

A workflow that was started just before Temporal went away makes no progress meanwhile. Its warnings are remembered here
for as long as an instance lives after its warning, and are answered here once Temporal is found to be away.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from dovetail.activities.interruptions.answer_interruptions import AnswerInterruptions
from dovetail.activities.interruptions.tell_interruptions import InterruptionNotices
from dovetail.messages.interruptions import Interruption
from dovetail.ports.failures import Failure, Retryable
from dovetail.telemetry.metrics.ours.absence import answered_directly

REMEMBERED_SECONDS: Final = 180.0

_log = logging.getLogger(__name__)


class DirectAnswers:
    """The answers that this process gives without a workflow. `is_away`: whether Temporal is known not to answer;
    `why_unfit`: why this worker may take no step now, empty if it may."""

    def __init__(
        self,
        answering: AnswerInterruptions,
        notices: InterruptionNotices,
        now: Callable[[], float],
        is_away: Callable[[], bool],
        why_unfit: Callable[[], str],
    ) -> None:
        self.is_away, self._why_unfit = is_away, why_unfit
        self.answering, self.notices, self._now = answering, notices, now
        self._begun: list[tuple[float, tuple[Interruption, ...]]] = []

    async def answer(self, warnings: Sequence[Interruption]) -> None:
        """Delete the claims of the instances, then publish notices."""
        meant = tuple(each for each in warnings if each.reason != "no_op")
        if not meant:
            return
        unfit = self._why_unfit()
        if unfit:
            raise Retryable("worker", f"no warning is answered: {unfit}")
        answered = await self.answering.answer_interruptions(meant)
        await self.notices.tell_interruptions(answered)
        answered_directly(len(meant))
        deleted = [name for each in answered for name in each.deleted]
        _log.warning("%d warnings are answered without Temporal; deleted: %s", len(meant), ", ".join(deleted) or "-")

    def remember(self, warnings: tuple[Interruption, ...]) -> None:
        self._forget()
        self._begun.append((self._now(), warnings))

    async def answer_what_was_begun(self) -> None:
        """Answer the warnings of workflows that were started recently: nobody knows whether those ran before Temporal
        went away. One that cannot be answered yet holds up no other."""
        self._forget()
        failed: Failure | None = None
        for each in tuple(self._begun):
            try:
                await self.answer(each[1])
                self._begun.remove(each)
            except Failure as failure:
                failed = failure
        if failed is not None:
            raise failed

    def _forget(self) -> None:
        limit = self._now() - REMEMBERED_SECONDS
        self._begun = [(at, warnings) for at, warnings in self._begun if at >= limit]
