"""How long may a claim take to become a node?

Five minutes to be launched, fifteen to be registered, both from the moment at which the condition last changed, which
is the claim's creation while the status has never changed (LIF-41, LIF-43). Once registered there is no limit (LIF-39,
LIF-40) but for a node that runs nothing: fifteen minutes where nobody waits for it any more, else 45 (LIF-83).
"""

from typing import Final

from dovetail.lifecycle.conditions import conditions_of_claim
from dovetail.model.names import INITIALIZED_CONDITION, LAUNCHED, REGISTERED_CONDITION
from dovetail.model.nodes import TRUE, NodeClaim

LAUNCH_SECONDS: Final = 5 * 60.0
REGISTRATION_SECONDS: Final = 15 * 60.0
UNUSED_SECONDS: Final = 15 * 60.0
AWAITED_SECONDS: Final = 45 * 60.0  # with the time until then still within the hour for which launches are remembered


def launch_overdue(claim: NodeClaim, now: float) -> bool:
    """LIF-41: not launched within five minutes."""
    return _overdue(claim, LAUNCHED, LAUNCH_SECONDS, now)


def registration_overdue(claim: NodeClaim, now: float) -> bool:
    """LIF-43: not registered within fifteen minutes."""
    return _overdue(claim, REGISTERED_CONDITION, REGISTRATION_SECONDS, now)


def initialization_overdue(claim: NodeClaim, now: float, *, awaited: bool) -> bool:
    """LIF-83: registered for so long, and not initialised. `awaited`: whether a pod still waits for it."""
    registered = conditions_of_claim(claim).find(REGISTERED_CONDITION)
    if registered is None or registered.status != TRUE or claim.is_true(INITIALIZED_CONDITION):
        return False
    return now - registered.changed >= (AWAITED_SECONDS if awaited else UNUSED_SECONDS)


def _overdue(claim: NodeClaim, kind: str, limit: float, now: float) -> bool:
    condition = conditions_of_claim(claim).find(kind)
    return condition is not None and condition.status != TRUE and now - condition.changed >= limit
