"""Notices about a NodeClaim that the API server refuses to create."""

from collections.abc import Mapping
from typing import Final

from dovetail.notices.notice import Notice

REFUSED_WINDOW: Final = 900.0  # a policy that refuses once refuses each retry


def claim_refused(pool: str, pool_uid: str, why: str) -> Notice:
    """A notice on the pool, because the claim does not exist. Once for a pool, however many claims are refused."""
    return Notice(
        kind="NodePool",
        name=pool,
        uid=pool_uid,
        type="Warning",
        reason="NodeClaimRefused",
        message=f"A NodeClaim was refused, its pods wait: {why}",
        window=REFUSED_WINDOW,
    )


def refused_words(why: Mapping[str, str]) -> str:
    """Why no claim is accepted for a pod, by NodePool."""
    return "; ".join(f"the API server refuses a NodeClaim of NodePool {p} for it: {said}" for p, said in why.items())
