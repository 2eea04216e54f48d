"""Finds the partition of its placement group in which EC2 has placed an instance (AWS-95).

EC2 chooses the partition after the launch has been answered, and pods may require one, so the node is not registered
before it is known: the launch leaves the label empty and a registration hook on the claim; here the label is filled and
the hook is removed.
"""

from collections.abc import Callable, Sequence
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instances.instance import instance_id
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.upkeep.upkeep_task import each
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.ports.objects import MetadataChange, NodeClaims

_AGAIN_SECONDS: Final = 2.0
_ROUND_SECONDS: Final = 600.0


class Partitions:
    def __init__(self, inventory: Inventory, claims: NodeClaims, clock: Callable[[], float]) -> None:
        self._inventory, self._claims, self._clock = inventory, claims, clock

    async def keep(self, claims: Sequence[NodeClaim]) -> float:
        waiting = [claim for claim in claims if waits_for_partition(claim)]
        await each(waiting, self._fill, doing="its partition is not known")
        return self._clock() + (_AGAIN_SECONDS if waiting else _ROUND_SECONDS)

    async def _fill(self, claim: NodeClaim) -> None:
        facts = await self._inventory.live(instance_id(claim.provider_id))
        if facts is None or not facts.partition:
            return
        known: dict[str, str | None] = {names.PARTITION: facts.partition}
        await self._claims.patch(claim, MetadataChange(labels=known, annotations={core.REGISTRATION_HOOK: None}))


def waits_for_partition(claim: NodeClaim) -> bool:
    """Whether its registration waits for the partition."""
    if not claim.provider_id or claim.deleting_since is not None:
        return False
    return claim.annotations.get(core.REGISTRATION_HOOK) == names.PARTITION_HOOK
