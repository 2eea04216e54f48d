"""The notice that no places are kept for pods, because the worker may not nominate them."""

from dataclasses import replace
from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.notices.notice import Notice

WINDOW: Final = 3600.0  # once; again after an hour, when Events are forgotten


def places_not_kept(claim: NodeClaim, why: str) -> Notice:
    """A notice on the NodePool of the claim, once for all its claims."""
    pool = claim.labels.get(names.NODE_POOL, "")
    owner = next((owner.uid for owner in claim.owners if owner.kind == "NodePool"), "")
    notice = Notice(
        kind="NodePool",
        name=pool,
        uid=owner,
        type="Warning",
        reason="PlacesNotKept",
        message="Pods are not nominated for the nodes that are made for them, so that more of them wait for a second "
        f"node: {why}. Grant patch on pods/status, or set DOVETAIL_COST_KEEP_PLACES=false",
        distinct="places",
    )
    return replace(notice, window=WINDOW)
