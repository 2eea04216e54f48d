"""Deletes what was made for a deleted class, and profiles and templates that are no longer used (AWS-46, AWS-85,
AWS-111). What may not be deleted holds up nothing else.

A template is idle when no launch has used it for an hour, or for five minutes once the account may have no more: each
set of labels has its own, and a day of jobs that are labelled one by one would fill the quota. Upstream deletes idle
ones every two minutes and makes them again for the next launch.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.launch.launch_templates import LaunchTemplates
from dovetail.adapters.aws.launch.template_data import NAME_PREFIX
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.instance_profiles import Profiles
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.adapters.aws.tags import from_tags
from dovetail.adapters.aws.upkeep.upkeep_task import log_failure
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Permanent

_log = logging.getLogger(__name__)

IDLE_SECONDS: Final = 3600.0
_IDLE_WHEN_FULL: Final = 300.0
ROUND_SECONDS: Final = 1800.0
_SOON_SECONDS: Final = 60.0
_MOST: Final = 100  # deletes of a round, which holds up the upkeep of classes


class CleanUp:
    """Deletes profiles and templates."""

    def __init__(
        self,
        calls: Calls,
        settings: AwsSettings,
        profiles: Profiles,
        templates: LaunchTemplates,
        clock: Callable[[], float],
    ) -> None:
        self._calls, self._settings, self._clock = calls, settings, clock
        self._profiles, self._templates = profiles, templates
        self._profiles_at = self._templates_at = clock() + ROUND_SECONDS
        self._soon = clock()
        self._refused: dict[str, float] = {}  # templates that may not be deleted → until when they are left alone

    async def of_class(self, node_class: NodeClass) -> None:
        """Raises the first refusal, once all have been tried."""
        made = await self._templates_with(names.NODE_CLASS, node_class.name)
        templates = [row["LaunchTemplateName"] for row in made]
        refused = {
            **await _each(templates, self._delete),
            **await _each(await self._profiles.made_for(node_class), self._profiles.delete),
        }
        for failure in refused.values():
            raise failure

    async def round(self, used_profiles: frozenset[str] | None) -> float:
        """Twice an hour: profiles and templates that are no longer used; these also soon, where they are too many.
        Returns the time of the next round. `used_profiles`: None where that is unknown, and none is deleted."""
        now = self._clock()
        if now >= self._profiles_at:
            self._profiles_at = now + ROUND_SECONDS
            if used_profiles is not None:
                await _kept_up("profiles", self._collect_profiles(used_profiles))
        if now >= (self._soon if self._templates.full else self._templates_at):
            self._soon, self._templates_at = now + _SOON_SECONDS, now + ROUND_SECONDS
            await _kept_up("launch templates", self._collect_templates(now))
        return min(self._profiles_at, self._soon if self._templates.full else self._templates_at)

    async def _collect_profiles(self, used: frozenset[str]) -> None:
        unused = await self._profiles.unused(used)
        refused = await _each(unused, self._profiles.delete)
        if gone := [name for name in unused if name not in refused]:
            _log.info("deleted instance profiles that nothing uses: %s", ", ".join(gone))

    async def _collect_templates(self, now: float) -> None:
        """The oldest first; one that may not be deleted is left for half an hour, as it would hold up the others."""
        since = now - (_IDLE_WHEN_FULL if self._templates.full else IDLE_SECONDS)
        self._refused = {name: until for name, until in self._refused.items() if until > now}
        kept, idle = self._templates.used_since(since).union(self._refused), list[tuple[float, str]]()
        for row in await self._templates_with(names.CLUSTER_TAG, self._settings.cluster):
            made: Any = row.get("CreateTime")
            at = made.timestamp() if isinstance(made, datetime) else now
            if at < since and row["LaunchTemplateName"] not in kept:
                idle.append((at, row["LaunchTemplateName"]))
        tried = [name for _, name in sorted(idle)[:_MOST]]
        refused = await _each(tried, self._delete)
        self._refused.update(dict.fromkeys(refused, now + ROUND_SECONDS))
        if len(idle) > _MOST:
            self._templates_at = self._soon
        elif len(refused) < len(tried):
            self._templates.full = False

    async def _templates_with(self, key: str, value: str) -> list[Json]:
        """Ours only: named by us and tagged with this cluster."""
        rows = await self._calls.every(
            "ec2",
            "DescribeLaunchTemplates",
            "LaunchTemplates",
            Filters=[
                {"Name": f"tag:{names.CLUSTER_TAG}", "Values": [self._settings.cluster]},
                *([] if key == names.CLUSTER_TAG else [{"Name": f"tag:{key}", "Values": [value]}]),
            ],
            MaxResults=200,
        )
        return [
            row
            for row in rows
            if row.get("LaunchTemplateName", "").startswith(NAME_PREFIX)
            and from_tags(row.get("Tags")).get(key, value) == value
        ]

    async def _delete(self, name: str) -> None:
        self._templates.forget(name)
        answer = await self._calls.attempt("ec2", "DeleteLaunchTemplate", LaunchTemplateName=name)
        if isinstance(answer, Denied) and answer.code not in NOT_FOUND:
            raise refusal("ec2:DeleteLaunchTemplate", answer)


async def _each(found: Iterable[str], delete: Callable[[str], Awaitable[None]]) -> dict[str, Failure]:
    """Delete each; the refusals by name."""
    refused = dict[str, Failure]()
    for name in found:
        try:
            await delete(name)
        except Permanent as failure:
            refused[name] = failure
    for name, why in list(refused.items())[:1]:
        _log.warning("%d of what is no longer used could not be deleted, first %s: %s", len(refused), name, why)
    return refused


async def _kept_up(what: str, collection: Awaitable[None]) -> None:
    try:
        await collection
    except Exception as error:
        log_failure(f"collection of {what}", error)
