"""Finds launch templates in EC2 and makes those that are missing (AWS-85).

A template is named by its content, so two workers that make one at once make the same. Idle ones are deleted by upkeep,
not here. That a template exists is remembered; if someone has deleted it, the fleet is refused and it is forgotten.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, TEMPLATE_EXISTS, Denied, refusal
from dovetail.adapters.aws.launch.template_data import Template
from dovetail.adapters.aws.tags import tag_specification
from dovetail.model.values.json import Json

T = TypeVar("T")

_KNOWN_SECONDS: Final = 600.0


class _Known(NamedTuple):
    until: float
    id: str  # empty if another has just made it, and EC2 has not said it


class LaunchTemplates:
    def __init__(self, calls: Calls, clock: Callable[[], float]) -> None:
        self._calls, self._clock = calls, clock
        self._known: dict[str, _Known] = {}
        self._under_way: dict[str, asyncio.Future[Any]] = {}
        self._making: dict[str, asyncio.Lock] = {}
        self.full = False  # the account may have no more of them: its quota is all its programs' together

    async def once(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """Look for a template and make it: callers who come in the meantime get the same answer.

        A plan's claims are launched at once and mostly from one new template.
        """
        under_way = self._under_way.get(name)
        if under_way is None:
            under_way = self._under_way[name] = asyncio.ensure_future(work())
            under_way.add_done_callback(lambda _: self._under_way.pop(name, None))
        found: T = await asyncio.shield(under_way)
        return found

    async def exists(self, name: str) -> bool:
        """Whether EC2 has it, as known or as asked now."""
        if self._is_known(name):
            self._keep(name)
            return True
        answer = await self._calls.attempt("ec2", "DescribeLaunchTemplates", LaunchTemplateNames=[name])
        if isinstance(answer, Denied):
            if answer.code in NOT_FOUND:
                return False
            raise refusal("ec2:DescribeLaunchTemplates", answer)
        for found in answer.get("LaunchTemplates") or ():
            self._keep(name, found.get("LaunchTemplateId", ""))
            return True
        return False

    async def make(self, template: Template) -> Denied | None:
        """Make one that was not found; the refusal if EC2 rejects it. One that another has just made is as good."""
        lock = self._making.setdefault(template.name, asyncio.Lock())
        async with lock:
            if self._is_known(template.name):
                return None
            answer = await self._create(template)
        self._making.pop(template.name, None)
        if isinstance(answer, Denied):
            if answer.code != TEMPLATE_EXISTS:
                self.full |= answer.code.endswith("LimitExceeded")
                return answer
            answer = {}
        self._keep(template.name, (answer.get("LaunchTemplate") or {}).get("LaunchTemplateId", ""))
        return None

    def id_of(self, name: str) -> str:
        """Its id, by which fleets answer; empty if EC2 has not said it."""
        known = self._known.get(name)
        return "" if known is None else known.id

    def forget(self, name: str) -> None:
        """EC2 does not have it after all."""
        self._known.pop(name, None)

    def used_since(self, moment: float) -> frozenset[str]:
        return frozenset(name for name, known in self._known.items() if known.until - _KNOWN_SECONDS >= moment)

    def _is_known(self, name: str) -> bool:
        known = self._known.get(name)
        return known is not None and known.until > self._clock()

    def _keep(self, name: str, identity: str = "") -> None:
        self._known[name] = _Known(self._clock() + _KNOWN_SECONDS, identity or self.id_of(name))

    async def _create(self, template: Template) -> Json | Denied:
        # No token of ours: the name is unique already, and a token would bring back what was deleted meanwhile.
        return await self._calls.attempt(
            "ec2",
            "CreateLaunchTemplate",
            LaunchTemplateName=template.name,
            LaunchTemplateData=template.data,
            TagSpecifications=[tag_specification("launch-template", template.tags)],
        )
