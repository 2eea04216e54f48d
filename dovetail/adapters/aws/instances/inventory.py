"""The instances of this cluster (AWS-101 to AWS-103).

Lists are read whole and remembered for drift, which checks every claim and may be some minutes late; look-ups of one
instance are always live, and concurrent ones share one call. Because one unknown id refuses a whole batch, such a batch
is repeated with a filter.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.instances.instance import LIVE_STATES, InstanceFacts, read_instance
from dovetail.adapters.aws.instances.joined_calls import JoinedCalls
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names as core
from dovetail.model.values.json import Json

_LIVE: Final[Json] = {"Name": "instance-state-name", "Values": list(LIVE_STATES)}


class Inventory:
    def __init__(
        self,
        calls: Calls,
        settings: AwsSettings,
        clock: Callable[[], float] = time.time,
        shifted: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """`shifted`: zones whose instances may be missing from answers."""
        self._calls, self._settings, self._clock, self._shifted = calls, settings, clock, shifted
        self._known: dict[str, InstanceFacts] = {}
        self._listed_at = float("-inf")
        self._listing = asyncio.Lock()
        self._joined = JoinedCalls("describe_instances", self._by_ids)

    @property
    def cluster_uid(self) -> str:
        """This cluster's UID; empty if it is not known."""
        return self._settings.cluster_uid

    def is_foreign(self, facts: InstanceFacts) -> bool:
        """Whether its tag names another cluster, perhaps of the same name. One without the tag may be ours."""
        theirs = facts.tags.get(core.CLUSTER_UID_TAG, "")
        return bool(theirs and self.cluster_uid) and theirs != self.cluster_uid

    async def every(self) -> tuple[InstanceFacts, ...]:
        """All instances that carry this cluster's tags, and no other cluster's UID, and are not yet gone."""
        rows = await self._described(
            Filters=[
                {"Name": "tag-key", "Values": [core.NODE_POOL]},
                {"Name": "tag-key", "Values": [names.NODE_CLASS]},
                {"Name": f"tag:{names.CLUSTER_TAG}", "Values": [self._settings.cluster]},
                _LIVE,
            ],
            MaxResults=1000,
        )
        rows = [facts for facts in rows if not self.is_foreign(facts)]
        zones = self._shifted()
        kept = {key: facts for key, facts in self._known.items() if facts.zone in zones} if zones else {}
        self._known = {**kept, **{facts.id: facts for facts in rows}}
        self._listed_at = self._clock()
        return tuple(self._known.values())

    async def of_claim(self, claim_uid: str) -> InstanceFacts | None:
        """The oldest live instance that carries the claim's UID."""
        rows = await self._described(Filters=[{"Name": f"tag:{core.CLAIM_UID_TAG}", "Values": [claim_uid]}, _LIVE])
        rows = [facts for facts in rows if not self.is_foreign(facts)]
        return min(rows, key=lambda facts: (facts.state == "shutting-down", facts.launched, facts.id), default=None)

    async def recent(self, identity: str, age: float) -> InstanceFacts | None:
        """As last listed; listed again if that was more than `age` seconds ago or the instance was missing."""
        if self._clock() - self._listed_at > age:
            async with self._listing:
                if self._clock() - self._listed_at > age:
                    await self.every()
        known = self._known.get(identity)
        return known if known is not None else await self.live(identity)

    def last_seen(self, identity: str) -> InstanceFacts | None:
        """As last listed, at any time; for zones whose answers are unreliable (AWS-102)."""
        return self._known.get(identity)

    async def live(self, identity: str) -> InstanceFacts | None:
        """Its current state; None if EC2 does not show it as live, or there is no id."""
        return None if not identity else await self._joined.answer(identity)

    async def _by_ids(self, ids: list[str]) -> dict[str, InstanceFacts]:
        answer = await self._calls.attempt("ec2", "DescribeInstances", InstanceIds=ids, Filters=[_LIVE])
        if isinstance(answer, Denied):
            if answer.code not in NOT_FOUND:
                raise refusal("ec2:DescribeInstances", answer)
            if len(ids) == 1:
                return {}
            # As a filter, unknown ids are simply not in the answer.
            rows = await self._described(Filters=[{"Name": "instance-id", "Values": ids}, _LIVE])
            return {facts.id: facts for facts in rows}
        return {facts.id: facts for facts in self._read([answer])}

    async def _described(self, **parameters: Any) -> list[InstanceFacts]:
        pages = [page async for page in self._calls.pages("ec2", "DescribeInstances", **parameters)]
        return self._read(pages)

    def _read(self, pages: Iterable[Json]) -> list[InstanceFacts]:
        return [
            read_instance(raw, reserved_capacity=self._settings.reserved_capacity)
            for page in pages
            for reservation in page.get("Reservations") or ()
            for raw in reservation.get("Instances") or ()
        ]
