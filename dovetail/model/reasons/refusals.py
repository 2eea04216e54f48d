"""Launches that the cloud refuses, in words: the condition Launched contains its answer to the last attempt."""

from typing import Final

from dovetail.model.names import LAUNCHED
from dovetail.model.nodes import AWAITING_RECONCILIATION, NodeClaim

# By then a launch has been tried four times: after one, two and four seconds more.
REFUSED_SECONDS: Final = 20.0


def refusal_of(claim: NodeClaim) -> str:
    """The cloud's answer to a launch that has not succeeded; empty if there is none."""
    launched = claim.condition(LAUNCHED)
    if claim.deleting_since is not None or launched is None or launched.status == "True":
        return ""
    if not launched.message or launched.reason == AWAITING_RECONCILIATION:
        return ""
    return f"{launched.reason}: {launched.message}"
