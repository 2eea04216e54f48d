"""Hands decisions to the recorder of their inputs. There is none unless a setting asks for it."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from dovetail.disruption.choose import Choice
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan, Target
from dovetail.model.own.claim_memory import CalledOff
from dovetail.model.snapshot import Snapshot
from dovetail.telemetry.metrics.karpenters.provisioning import Decisions
from dovetail.telemetry.metrics.ours.faults import Faults

DecisionKind = Literal["disruption", "provisioning"]


class Flights(Protocol):
    def decided(
        self,
        kind: DecisionKind,
        snapshot: Snapshot,
        plan: Choice | ProvisioningPlan,
        first: frozenset[str] = frozenset(),
    ) -> None:
        """Keep what was decided on this snapshot; `first`: the pods that provisioning began with. Returns at once."""


class NoFlights:
    def decided(self, *_: object, **__: object) -> None:
        """Keep nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFollowers:
    """What hears of each decision: the metrics, and what keeps its inputs. `beside`: begun with each look at the
    cluster for a disruption; it says when to look at the cluster again for its sake. `called_off`: a plan that
    was held, and the node for which a person has called it off."""

    decisions: Decisions
    faults: Faults
    flights: Flights
    beside: Callable[[Snapshot], float]
    called_off: Callable[[DisruptionPlan, Target, CalledOff], Awaitable[None]]


def nothing_beside(snapshot: Snapshot) -> float:
    """The `beside` of a decision beside which nothing is begun."""
    return math.inf
