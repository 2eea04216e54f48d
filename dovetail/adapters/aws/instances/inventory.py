"""The instances of this cluster (AWS-101 to AWS-103).

Lists are read whole and remembered for drift, which checks every claim and may be some minutes late; look-ups of one
instance are always live, and concurrent ones share one call. One id that EC2 does not know, or does not take, refuses a
whole batch; and while a zone is in trouble an answer may lack instances that run. So an instance counts as gone only
if EC2 says that it has ended, or refuses its id as unknown when asked about it alone, some minutes after its launch:
before that EC2 may not know it yet. An answer with nothing says nothing.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.instances.instance import LIVE_STATES, InstanceFacts, instance_id, read_instance
from dovetail.adapters.aws.instances.joined_calls import JoinedCalls
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json
from dovetail.ports.failures import Postponed, Unreachable

_LIVE: Final[Json] = {"Name": "instance-state-name", "Values": list(LIVE_STATES)}
_MOST_VALUES: Final = 200  # of a filter; EC2 refuses more
_SHOWN_SECONDS: Final = 300.0  # after a launch, at most, until EC2 knows the id everywhere; mostly a few seconds
_ABOUT_AN_ID: Final = "Invalid"  # begins a code that one id may have caused; those of rights and limits do not

_Found = InstanceFacts | Literal["gone"]


class Inventory:
    def __init__(
        self,
        calls: Calls,
        settings: AwsSettings,
        clock: Callable[[], float],
        shifted: Callable[[], frozenset[str]],
        claims: Callable[[], Iterable[NodeClaim]],
    ) -> None:
        """`shifted`: zones whose instances may be missing from answers."""
        self._calls, self._settings, self._clock, self._shifted = calls, settings, clock, shifted
        self._claims = claims
        self._known: dict[str, InstanceFacts] = {}
        self._launched: dict[str, InstanceFacts] = {}  # by this process, within the last minutes
        self._listed_at = float("-inf")
        self._listing = asyncio.Lock()
        self._joined: JoinedCalls[_Found] = JoinedCalls("describe_instances", self._by_ids)
        self._of_claims = JoinedCalls("describe_instances", self._by_claims)

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
        rows = await self._of_claims.answer(claim_uid)
        if not rows:
            ours = (facts.id for facts in self._launched.values() if facts.tags.get(core.CLAIM_UID_TAG) == claim_uid)
            return await self.live(max(ours, key=lambda each: self._launched[each].launched, default=""))
        return min(rows, key=lambda facts: (facts.state == "shutting-down", facts.launched, facts.id))

    async def _by_claims(self, uids: list[str]) -> dict[str, list[InstanceFacts]]:
        found: dict[str, list[InstanceFacts]] = {}
        for start in range(0, len(uids), _MOST_VALUES):
            values = uids[start : start + _MOST_VALUES]
            for facts in await self._described(
                Filters=[{"Name": f"tag:{core.CLAIM_UID_TAG}", "Values": values}, _LIVE]
            ):
                if not self.is_foreign(facts):
                    found.setdefault(facts.tags[core.CLAIM_UID_TAG], []).append(facts)
        return found

    def launched(self, facts: InstanceFacts) -> None:
        """Remember what was just launched, until EC2 shows it to everyone."""
        since = self._clock() - _SHOWN_SECONDS
        self._launched = {key: one for key, one in self._launched.items() if one.launched > since}
        self._launched[facts.id] = facts

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
        if not identity:
            return None
        found = await self._joined.answer(identity) or await self._alone(identity)
        return None if found == "gone" else found

    async def _alone(self, identity: str) -> _Found:
        answer = await self._calls.attempt("ec2", "DescribeInstances", InstanceIds=[identity])
        if isinstance(answer, Denied):
            if answer.code not in NOT_FOUND:
                raise refusal("ec2:DescribeInstances", answer)
            return self._unknown(identity)
        found = _by_id(self._read([answer])).get(identity)
        if found is None:  # EC2 refuses an id that it does not know
            raise Unreachable("ec2:DescribeInstances", f"the answer lacks {identity}, which was asked for alone")
        return found

    def _unknown(self, identity: str) -> _Found:
        """What an id is that EC2 does not know: gone, unless it was launched just now, by whichever worker."""
        since = self._clock() - _SHOWN_SECONDS
        ours = self._launched.get(identity)
        if ours is not None and ours.launched > since:
            return ours
        for claim in self._claims():
            said = claim.condition(core.LAUNCHED)
            if instance_id(claim.provider_id) == identity and (said.changed if said else claim.created) > since:
                raise Postponed("ec2:DescribeInstances", f"{identity} was launched just now, and is not shown yet")
        return "gone"

    async def _by_ids(self, ids: list[str]) -> dict[str, _Found]:
        """What EC2 says of them, in every state, because one that has just ended would be lacking otherwise; an id that
        the answer lacks is to be asked about alone."""
        if len(ids) == 1:
            return {ids[0]: await self._alone(ids[0])}
        answer = await self._calls.attempt("ec2", "DescribeInstances", InstanceIds=ids)
        if not isinstance(answer, Denied):
            return _by_id(self._read([answer]))
        if answer.code in NOT_FOUND:
            # As a filter, unknown ids are simply not in the answer.
            chunks = [ids[start : start + _MOST_VALUES] for start in range(0, len(ids), _MOST_VALUES)]
            rows = [await self._described(Filters=[{"Name": "instance-id", "Values": each}]) for each in chunks]
            return _by_id(facts for each in rows for facts in each)
        if not answer.code.startswith(_ABOUT_AN_ID):
            raise refusal("ec2:DescribeInstances", answer)
        half, found = len(ids) // 2, dict[str, _Found]()
        for each in (ids[:half], ids[half:]):
            if len(each) > 1:  # a single one is asked about by who wants it
                found |= await self._by_ids(each)
        return found

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


def _by_id(rows: Iterable[InstanceFacts]) -> dict[str, _Found]:
    return {facts.id: facts if facts.state in LIVE_STATES else "gone" for facts in rows}
