"""The one way to delete a NodeClaim. What the deletion means is carried out by TerminateNode."""

from dovetail.messages.subjects import ClaimRef
from dovetail.messages.writes import Write
from dovetail.ports.objects import NodeClaims


async def delete_claim(claims: NodeClaims, claim: ClaimRef) -> Write:
    """Delete the claim of that UID; the write is of version 0 where it was gone already.

    Another claim under the same name is left alone.
    """
    version = await claims.delete(claim.name, claim.uid)
    return Write(kind="NodeClaim", name=claim.name, uid=claim.uid, version=version)
