"""Tags instances with their cluster's UID if their launch did not know it yet.

Those are instances that Karpenter launched. With the tag, two clusters of one name can distinguish their instances. An
instance that has the tag keeps it, whatever its value: one of another cluster is never touched, and our rights do not
allow it. The claim records that the tag exists, so that it is looked up only once.
"""

from collections.abc import Callable, Collection
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.instances.instance import instance_id
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.tags import as_tags
from dovetail.adapters.aws.upkeep.upkeep_task import each
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.ports.failures import Refused
from dovetail.ports.objects import MetadataChange, NodeClaims

_AGAIN_SECONDS: Final = 60.0  # until a claim's own look shows what was written, or a person has allowed it
_ROUND_SECONDS: Final = 600.0


class ClusterTag:
    """Tags instances with the cluster's UID."""

    def __init__(self, calls: Calls, inventory: Inventory, claims: NodeClaims, clock: Callable[[], float]) -> None:
        self._calls, self._inventory, self._claims, self._clock = calls, inventory, claims, clock
        self._uid = inventory.cluster_uid
        self._later: dict[str, float] = {}  # when a claim is looked at again, by its UID

    async def keep(self, claims: Collection[NodeClaim]) -> float:
        """Tag what is not tagged; returns when to look again."""
        now = self._clock()
        self._later = {uid: at for uid, at in self._later.items() if at > now}
        lacking = [claim for claim in claims if self.lacks_tag(claim)]
        wanting = [claim for claim in lacking if claim.uid not in self._later]
        self._later.update((claim.uid, now + _AGAIN_SECONDS) for claim in wanting)
        await each(wanting, self._tag, doing="its instance does not get the cluster's UID as a tag")
        return now + (_AGAIN_SECONDS if lacking else _ROUND_SECONDS)

    def lacks_tag(self, claim: NodeClaim) -> bool:
        """Whether the claim's instance may lack it: its launch was not to set it, and it is not known to exist."""
        if not self._uid or not claim.provider_id or claim.deleting_since is not None:
            return False
        launched_with = self._uid in claim.annotations.get(core.LAUNCH_REQUEST, "")  # among the frozen tags
        return not launched_with and claim.annotations.get(core.CLUSTER_UID_TAG) != self._uid

    async def _tag(self, claim: NodeClaim) -> None:
        identity = instance_id(claim.provider_id)
        facts = await self._inventory.live(identity)
        if facts is None:
            return  # gone, or not shown yet
        if self._inventory.is_foreign(facts):
            theirs = facts.tags[core.CLUSTER_UID_TAG]
            raise Refused(f"instance {identity}", f"its tag {core.CLUSTER_UID_TAG} says {theirs}: another cluster's")
        if core.CLUSTER_UID_TAG not in facts.tags:
            tags = as_tags({core.CLUSTER_UID_TAG: self._uid})
            answer = await self._calls.attempt("ec2", "CreateTags", Resources=[identity], Tags=tags)
            if isinstance(answer, Denied):
                if answer.code in NOT_FOUND:
                    return
                raise refusal("ec2:CreateTags", answer)
        await self._claims.patch(claim, MetadataChange(annotations={core.CLUSTER_UID_TAG: self._uid}))
