"""Gives each instance the name of its node (AWS-112).

The claim's own name is in the launch call already; existing values are never overwritten. An instance that EC2 refuses
to tag is tried again after a second, as upstream does, and then less and less often.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.instances.instance import instance_id
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.tags import as_tags
from dovetail.adapters.aws.upkeep.upkeep_task import log_failure
from dovetail.model.names import REGISTERED_CONDITION
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.backoff import Backoff
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange, NodeClaims

# After a conflict, a refusal, or for an instance that EC2 does not show yet.
_RETRIES: Final = Backoff(first=1.0, longest=60.0)
_NOTED_SECONDS: Final = 10.0
_AT_ONCE: Final = 20  # a burst of joining nodes shares its look-ups
_ROUND_SECONDS: Final = 600.0
SETTLED_SECONDS: Final = 5.0


class Tagging:
    def __init__(
        self,
        calls: Calls,
        inventory: Inventory,
        cluster: str,
        claims: NodeClaims | None,
        clock: Callable[[], float],
    ) -> None:
        self._calls, self._inventory, self._clock = calls, inventory, clock
        self._cluster, self._claims = cluster, claims
        self._later: dict[str, float] = {}
        self._waited: dict[str, float] = {}
        # From which version on a claim shows that it was tagged, and until when that is waited for: a server that was
        # restored from a backup shows lower ones for long.
        self._noted: dict[str, tuple[int, float]] = {}

    async def keep(self, claims: Collection[NodeClaim]) -> float:
        """Tag what is not tagged; returns when to look again."""
        now = self._clock()
        untagged = [claim for claim in claims if lacks_tags(claim)]
        waited_for = {uid: version for uid, (version, until) in self._noted.items() if now < until}
        late = {claim.uid for claim in untagged if _version(claim) < waited_for.get(claim.uid, 0)}
        self._noted = {uid: noted for uid, noted in self._noted.items() if uid in late}
        wanting = [claim for claim in untagged if _has_settled(claim, now) and claim.uid not in late]
        known = {claim.uid for claim in wanting}
        self._later = {uid: at for uid, at in self._later.items() if at > now and uid in known}
        self._waited = {uid: wait for uid, wait in self._waited.items() if uid in known}
        wanting = [claim for claim in wanting if claim.uid not in self._later]
        slots = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*[self._one(claim, slots) for claim in wanting])
        settling = [now + SETTLED_SECONDS] if any(not _has_settled(claim, now) for claim in untagged) else []
        return min([*self._later.values(), *settling], default=now + _ROUND_SECONDS)

    async def _one(self, claim: NodeClaim, slots: asyncio.Semaphore) -> None:
        async with slots:
            try:
                await self._tag(claim)
            except Conflict:
                self._later[claim.uid] = self._clock() + _RETRIES.first  # written meanwhile, which is no failure
            except Exception as error:
                log_failure(f"NodeClaim {claim.name}: its instance is not tagged", error)
                self._postpone(claim)

    def _postpone(self, claim: NodeClaim) -> None:
        wait = self._waited.get(claim.uid, _RETRIES.first)
        self._later[claim.uid] = self._clock() + wait
        self._waited[claim.uid] = _RETRIES.after(wait)

    async def _tag(self, claim: NodeClaim) -> None:
        identity = instance_id(claim.provider_id)
        facts = await self._inventory.live(identity)
        if facts is None or self._inventory.is_foreign(facts):
            self._postpone(claim)
            return
        wanted = {
            names.NAME_TAG: claim.node_name,
            names.CLAIM_TAG: claim.name,
            names.CLUSTER_TAG: self._cluster,
        }
        missing = {key: value for key, value in wanted.items() if key not in facts.tags}
        if missing:
            answer = await self._calls.attempt("ec2", "CreateTags", Resources=[identity], Tags=as_tags(missing))
            if isinstance(answer, Denied):
                if answer.code in NOT_FOUND:
                    return
                raise refusal("ec2:CreateTags", answer)
        if self._claims is not None:
            noted = await self._note(self._claims, claim)
            if noted is not None:
                self._noted[claim.uid] = _version(noted), self._clock() + _NOTED_SECONDS

    async def _note(self, claims: NodeClaims, claim: NodeClaim) -> NodeClaim | None:
        """Record on the claim that its instance is tagged; if others have changed it, once more on its new version."""
        done = MetadataChange(annotations={names.TAGGED: "true", names.CLUSTER_TAGGED: "true"})
        try:
            return await claims.patch(claim, done)
        except Conflict as conflict:
            if not isinstance(conflict.current, NodeClaim):
                raise
            return await claims.patch(conflict.current, done) if lacks_tags(conflict.current) else conflict.current


def _version(claim: NodeClaim) -> int:
    """A later version is larger; an object never read from an API server has none."""
    return int(claim.resource_version or 0)


def _has_settled(claim: NodeClaim, now: float) -> bool:
    """A newly joined claim is written several times within a second, and each write would conflict with ours."""
    joined = claim.condition(REGISTERED_CONDITION)
    return joined is None or now - joined.changed >= SETTLED_SECONDS


def lacks_tags(claim: NodeClaim) -> bool:
    """Whether its instance still lacks the name of its node."""
    if not claim.node_name or not claim.provider_id or claim.deleting_since is not None:
        return False
    return any(claim.annotations.get(key) != "true" for key in (names.TAGGED, names.CLUSTER_TAGGED))
