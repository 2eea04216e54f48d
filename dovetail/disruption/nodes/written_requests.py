"""What people have written on a NodeClaim: that its disruption is called off, or that its node is to be replaced.

An annotation may hold more than a workflow or an Event should carry, so each text is cut.
"""

from typing import Final

from dovetail.model import names
from dovetail.model.nodes import NodeClaim

MOST_CHARACTERS: Final = 300
NO_REASON: Final = "no reason given"
UNNAMED: Final = "annotation"  # the author, if nobody says who wrote it


def cancel_reason(claim: NodeClaim) -> str:
    """Why its disruption is called off."""
    return _text(claim, names.CANCEL) or NO_REASON


def cancelled_by(claim: NodeClaim) -> str:
    """Who calls it off; empty where nobody has said."""
    return _text(claim, names.CANCEL_BY)


def replace_reason(claim: NodeClaim) -> str:
    return _text(claim, names.REPLACE) or NO_REASON


def replace_asked_by(claim: NodeClaim) -> str:
    """Who asks for that; empty where nobody has said."""
    return _text(claim, names.REPLACE_BY)


def is_asked_for_now(claim: NodeClaim) -> bool:
    """Whether it should be drained at once, outside budgets and windows."""
    return claim.annotations.get(names.REPLACE_NOW) == "true"


def _text(claim: NodeClaim, annotation: str) -> str:
    return claim.annotations.get(annotation, "")[:MOST_CHARACTERS]
