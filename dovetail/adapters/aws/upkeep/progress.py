"""Whether the latest change of an EC2NodeClass has reached its nodes: its condition NodesUpToDate, in the words that
upstream has proposed; for NodePools see dovetail/disruption/upkeep/roll_out.py.

What counts is the drift judge's answer about each claim since the class's resources were resolved for this generation.
Until it has answered about all of them the condition stays at the former generation, so that a gate waits.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.adapters.aws.drift import Judged
from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import Verdict, false, true, verdict_of
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json

_COMPARED: Final = (c.IMAGES, c.SUBNETS, c.GROUPS, c.RESERVATIONS, c.PLACEMENT)


def progress_of(
    node_class: NodeClass, claims: Iterable[NodeClaim], judged: Mapping[str, Judged], before: Iterable[Json]
) -> Verdict | None:
    """The verdict over the claims that refer to the class; None if it is not known yet."""
    behind = 0
    count = 0
    for claim in claims:
        known = judged.get(claim.uid)
        count += 1
        if not claim.provider_id or (claim.deleting_since is not None and known is None):
            continue  # it will be launched as the class is now; or nobody will judge it any more
        current = known is not None and known.generation == node_class.generation
        if known is None or not (current or claim.deleting_since is not None):
            return None
        behind += bool(known.reason)
    if not behind:
        # With nothing selected there is nothing to compare with, and a claim counts as unchanged.
        return None if any(verdict_of(before, kind).status == "False" for kind in _COMPARED) else true(c.UP_TO_DATE)
    text = f"{count - behind}/{count} nodes are up to date"
    if verdict_of(before, c.READY).status == "False":
        return false("RolloutBlocked", f"{text}; NodeClass is not ready")
    return false("RolloutInProgress", text)
