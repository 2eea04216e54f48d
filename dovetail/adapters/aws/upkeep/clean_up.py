"""Deletes what was made for a deleted class, and profiles and templates that are no longer used (AWS-46, AWS-85,
AWS-111).

A template is idle when no launch has used it for a day. Upstream deletes idle ones every two minutes and makes them
again for the next launch.
"""

import logging
import time
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

IDLE_SECONDS: Final = 24 * 3600.0
ROUND_SECONDS: Final = 1800.0


class CleanUp:
    """Deletes profiles and templates."""

    def __init__(
        self,
        calls: Calls,
        settings: AwsSettings,
        profiles: Profiles,
        templates: LaunchTemplates,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls, self._settings, self._clock = calls, settings, clock
        self._profiles, self._templates = profiles, templates
        self._next = clock() + ROUND_SECONDS

    async def of_class(self, node_class: NodeClass) -> None:
        await self._profiles.delete_all(node_class)
        for row in await self._templates_with(names.NODE_CLASS, node_class.name):
            await self._delete(row["LaunchTemplateName"])

    async def round(self, used_profiles: frozenset[str]) -> float:
        """Twice an hour: profiles and templates that are no longer used. Returns the time of the next round."""
        now = self._clock()
        if now < self._next:
            return self._next
        self._next = now + ROUND_SECONDS
        gone = await self._profiles.collect(used_profiles)
        if gone:
            _log.info("deleted instance profiles that nothing uses: %s", ", ".join(gone))
        used = self._templates.used_since(now - IDLE_SECONDS)
        for row in await self._templates_with(names.CLUSTER_TAG, self._settings.cluster):
            name: str = row["LaunchTemplateName"]
            made: Any = row.get("CreateTime")
            old = isinstance(made, datetime) and now - made.timestamp() > IDLE_SECONDS
            if old and name not in used:
                await self._delete(name)
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
