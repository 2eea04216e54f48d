"""A taint on a node, a claim or a pool, and which tolerations accept it.

PreferNoSchedule blocks like any other effect (PLC-80); a step of relaxation makes it a mere preference (PLC-108).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dovetail.model.names import UNREGISTERED_TAINT
from dovetail.model.pods import Toleration
from dovetail.model.values.digits import integer


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """One taint; an absent value is the empty string."""

    key: str
    effect: str
    value: str = ""


# PLC-64, API-34: taints that the cloud or the kubelet removes while a node comes up, by (key, effect).
# `unreachable:NoExecute` is not among them, as upstream.
_EPHEMERAL: Final = frozenset(
    {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (UNREGISTERED_TAINT, "NoExecute"),
    }
)
_EPHEMERAL_PREFIX: Final = "readiness.k8s.io/"


def taint_text(taint: Taint) -> str:
    """key=value:effect, as kubectl and the kubelet's flag write it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_ephemeral(taint: Taint) -> bool:
    """Whether a taint disappears by itself while a node comes up (PLC-64)."""
    return (taint.key, taint.effect) in _EPHEMERAL or taint.key.startswith(_EPHEMERAL_PREFIX)


_DECIMAL: Final = re.compile(r"(0|-?[1-9][0-9]*)\Z")


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """Gt: the taint's number is above the toleration's. Numbers must be written without leading zeros or signs."""
    if not (_DECIMAL.match(taint.value) and _DECIMAL.match(toleration.value)):
        return False
    number, bound = integer(taint.value), integer(toleration.value)
    if number is None or bound is None:
        return False
    return number > bound if toleration.operator == "Gt" else number < bound


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration accepts one taint. An empty key or effect in a toleration stands for any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
    return False


def untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """PLC-80: the first taint that no toleration accepts, whatever its effect; None if all are tolerated."""
    for taint in taints:
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
