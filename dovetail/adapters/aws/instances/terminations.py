"""Terminates instances; simultaneous terminations share one call (AWS-106, AWS-166)."""

import asyncio
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import Denied
from dovetail.adapters.aws.instances.joined_calls import JoinedCalls
from dovetail.ports.failures import Retryable

_LOST_AFTER: Final = 15.0  # seconds: a description may show what was before an accepted request


class Terminations:
    """The instances to terminate. A refused one keeps no other running."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._joined = JoinedCalls("terminate_instances", self._by_ids)
        self._accepted: dict[str, float] = {}  # by id: when, on the loop's clock

    def is_accepted(self, identity: str) -> bool:
        """Whether EC2 has just accepted the request: if the instance still runs later, it must be requested again."""
        return self._accepted.get(identity, float("-inf")) > _clock() - _LOST_AFTER

    async def terminate(self, identity: str) -> None:
        """Only a description proves that an instance is gone, so "not found" here is a failure like any other
        (AWS-106).

        Whatever the refusal, missing rights included, the call is repeated: an instance whose termination is given up
        costs money without end.
        """
        denied = await self._joined.answer(identity)
        if denied is not None:
            raise Retryable("ec2:TerminateInstances", f"{denied.code}: {denied.message}")
        since = _clock() - _LOST_AFTER
        self._accepted = {one: at for one, at in self._accepted.items() if at > since} | {identity: _clock()}

    async def _by_ids(self, ids: list[str]) -> dict[str, Denied]:
        """The refusals, by id. EC2 ends all of a call's instances or none, so a refused call is halved."""
        answer = await self._calls.attempt("ec2", "TerminateInstances", InstanceIds=ids)
        if not isinstance(answer, Denied):
            return {}
        if len(ids) == 1:
            return {ids[0]: answer}
        half = len(ids) // 2
        return {**await self._by_ids(ids[:half]), **await self._by_ids(ids[half:])}


def _clock() -> float:
    return asyncio.get_running_loop().time()
