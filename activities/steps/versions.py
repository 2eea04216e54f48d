"""Is this the claim that is meant?

The trap avoided: another object under the same name; a claim is the one meant only if its UID is.
"""

from dovetail.model.nodes import NodeClaim


def is_same(claim: NodeClaim | None, uid: str) -> bool:
    """Whether this is the claim of that UID."""
    return claim is not None and claim.uid == uid
