"""Where decisions are handed to whoever keeps their inputs. Nobody does, unless a setting asks for it."""

from typing import Literal, Protocol

from dovetail.disruption.choose import Choice
from dovetail.messages.plans import ProvisioningPlan
from dovetail.model.snapshot import Snapshot

DecisionKind = Literal["disruption", "provisioning"]


class Flights(Protocol):
    """Keeps what a decision was made from."""

    def decided(
        self,
        kind: DecisionKind,
        snapshot: Snapshot,
        plan: Choice | ProvisioningPlan,
        first: frozenset[str] = frozenset(),
    ) -> None:
        """On this snapshot this was decided; `first`: the pods that provisioning began with. Returns at once."""


class NoFlights:
    """Keeps nothing."""

    def decided(
        self,
        kind: DecisionKind,
        snapshot: Snapshot,
        plan: Choice | ProvisioningPlan,
        first: frozenset[str] = frozenset(),
    ) -> None:
        """Let it go."""
