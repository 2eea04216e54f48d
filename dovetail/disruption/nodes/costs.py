"""What it costs to disturb a pod, and what a node is worth per pod disturbed (DIS-31 to DIS-36).

Candidates are ordered by this, and Balanced weighs commands by it. Negative costs count only in the legacy figure,
never in the one used for ordering.
"""

import re
from collections.abc import Iterable, Mapping
from math import isinf
from typing import Final

from dovetail.disruption.nodes.offerings import price_of
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.model.pools import InstanceType

NODE_COST: Final = 1.0  # what disturbing a node costs even without pods
_PRICED: Final = (names.INSTANCE_TYPE, names.ZONE, names.CAPACITY_TYPE)
MOST: Final = 10.0  # an eviction costs between -10 and 10

# Go's ParseFloat takes underscores here but neither spaces nor hexadecimal integers (addendum to DIS-32); a hexadecimal
# number needs an exponent. Possessive, so that a long text is read once.
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9_]++\.?[0-9_]*+|\.[0-9_]++)(?:[eE][+-]?[0-9_]++)?")
_INT32: Final = re.compile(r"[+-]?0{0,99}[0-9]{1,10}")
_ENDLESS: Final = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_DIGITS: Final = r"[0-9a-f]++(?:_[0-9a-f]++)*+"
_HEXADECIMAL: Final = re.compile(
    rf"[+-]?0x(?:_?{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})p[+-]?[0-9]++(?:_[0-9]++)*+", re.IGNORECASE
)


def _deletion_cost(text: str | None) -> float:
    """The number; 0 if the text is none, or is beyond a float's range."""
    if not text:
        return 0.0
    try:
        if _HEXADECIMAL.fullmatch(text):
            return float.fromhex(text.replace("_", ""))
        if not _NUMBER.fullmatch(text):
            return float(text) if _ENDLESS.fullmatch(text) else 0.0
        number = float(text)
    except (ValueError, OverflowError):
        return 0.0
    return 0.0 if isinf(number) else number


def _whole(text: str) -> int:
    """An int32 as Go's ParseInt reads it; 0 if the text is none."""
    number = int(text) if _INT32.fullmatch(text) else 0
    return number if -(2**31) <= number < 2**31 else 0


def eviction_cost(pod: Pod, managed: bool = False) -> float:
    """One, plus what the pod's disruption cost and priority add, within bounds (DIS-32). Without a disruption cost its
    deletion cost counts, unless that is ours to write: `managed`."""
    if pod.deletion_cost is None and pod.disruption_cost is None and not pod.priority:
        return 1.0
    cost = 1.0
    if pod.disruption_cost is not None:
        cost += _whole(pod.disruption_cost) / 2.0**27
    elif pod.deletion_cost is not None and not managed:
        cost += _deletion_cost(pod.deletion_cost) / 2.0**27
    if pod.priority is not None:
        cost += pod.priority / 2.0**25
    return max(-MOST, min(MOST, cost))


def reschedule_cost(reschedulable: Iterable[Pod], managed: bool = False) -> float:
    """The cost of moving these pods off their node (DIS-33); 1.0 means that it is empty (DIS-36)."""
    return NODE_COST + sum(max(0.0, eviction_cost(pod, managed)) for pod in reschedulable)


def legacy_cost(pods: Iterable[Pod], claim: NodeClaim, now: float) -> float:
    """The cost of all pods, negative ones too, times the share of its life that the node has left (DIS-34)."""
    return sum(eviction_cost(pod) for pod in pods) * lifetime_left(claim, now)


def lifetime_left(claim: NodeClaim, now: float) -> float:
    """The share of its life that a node has left; 1 when it never expires."""
    if claim.expire_after is None:
        return 1.0
    if claim.expire_after == 0:
        return 0.0
    return max(0.0, min(1.0, (claim.expire_after - (now - claim.created)) / claim.expire_after))


def node_price(instance_type: InstanceType | None, zone: str, capacity_type: str) -> float:
    """The price of the node's own offering, available or not; 0 if unknown (DIS-31)."""
    if instance_type is None:
        return 0.0
    price = price_of(instance_type, zone, capacity_type)
    return 0.0 if price is None or price != price else price


def claim_price(claim: NodeClaim, types: Mapping[str, Mapping[str, InstanceType]]) -> float | None:
    """The price of a claim's instance, by its labels; None if unknown. `types`: by pool, then by name."""
    if any(key not in claim.labels for key in _PRICED):
        return None
    known = types.get(claim.labels.get(names.NODE_POOL, ""), {}).get(claim.labels[names.INSTANCE_TYPE])
    return node_price(known, claim.labels[names.ZONE], claim.labels[names.CAPACITY_TYPE]) or None


def pool_cost(pool: str, claims: Iterable[NodeClaim], types: Mapping[str, InstanceType]) -> float:
    """What a pool's claims cost an hour, including launching and draining ones; unknown prices count 0 (DIS-122)."""
    return sum(
        node_price(types.get(c.labels[names.INSTANCE_TYPE]), c.labels[names.ZONE], c.labels[names.CAPACITY_TYPE])
        for c in claims
        if c.labels.get(names.NODE_POOL) == pool and all(key in c.labels for key in _PRICED)
    )
