"""Who called a disruption off by the annotation `dovetail.sh/cancel`."""

from dovetail.disruption.nodes.written_requests import UNNAMED
from dovetail.model import names
from dovetail.ports.objects import NodeClaims


async def called_off_by(claims: NodeClaims, claim: str, written: str) -> str:
    """The author that `dovetail cancel` wrote down, else the program by whose name the API server has the
    annotation."""
    if written and written != UNNAMED:
        return written
    return await claims.annotated_by(claim, names.CANCEL) or UNNAMED
