"""Deletes what was made for a deleted class, and profiles and templates that are no longer used (AWS-46, AWS-85,
AWS-111).

A template is idle when no launch has used it for an hour, or for five minutes once the account may have no more: each
set of labels has its own, and a day of jobs that are labelled one by one would fill the quota. Upstream deletes idle
ones every two minutes and makes them again for the next launch.
"""

import logging
from collections.abc import Callable
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
from dovetail.model.values.json import Json

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
        self._next, self._soon = clock() + ROUND_SECONDS, clock()

    async def of_class(self, node_class: NodeClass) -> None:
        await self._profiles.delete_all(node_class)
        for row in await self._templates_with(names.NODE_CLASS, node_class.name):
            await self._delete(row["LaunchTemplateName"])

    async def round(self, used_profiles: frozenset[str]) -> float:
        """Twice an hour, and soon where templates are too many: profiles and templates that are no longer used. Returns
        the time of the next round."""
        now, full = self._clock(), self._templates.full
        if now < (self._soon if full else self._next):
            return self._next
        self._templates.full = False
        self._soon, self._next = now + _SOON_SECONDS, now + ROUND_SECONDS
        gone = await self._profiles.collect(used_profiles)
        if gone:
            _log.info("deleted instance profiles that nothing uses: %s", ", ".join(gone))
        since = now - (_IDLE_WHEN_FULL if full else IDLE_SECONDS)
        used, idle = self._templates.used_since(since), list[tuple[float, str]]()
        for row in await self._templates_with(names.CLUSTER_TAG, self._settings.cluster):
            made: Any = row.get("CreateTime")
            at = made.timestamp() if isinstance(made, datetime) else now
            if at < since and row["LaunchTemplateName"] not in used:
                idle.append((at, row["LaunchTemplateName"]))
        for _, name in sorted(idle)[:_MOST]:
            await self._delete(name)
        if len(idle) > _MOST:
            self._next, self._templates.full = self._soon, full
        return self._next

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
