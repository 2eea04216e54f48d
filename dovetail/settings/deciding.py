"""The settings of a process in the form that placement and disruption take."""

import time
from typing import Any, Final

from dovetail.background.time_limit import TimeLimit
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import nomination_seconds
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.placement.settings import BrakeSettings, CostSettings, PlacementSettings
from dovetail.settings.settings import Settings

STEPS = 20_000  # of a search for cheaper nodes; its time runs out sooner
# The settings that the functions below read, except the cloud's: they are kept with a kept decision.
DECIDING: Final = (
    "preferences",
    "min_values",
    "gates",
    "ignore_devices",
    "legacy_repair",
    "keep_way_back",
    "default_spread",
    "batch_max",
    "search_limit",
    "claims_per_pod",
    "placement_policy",
    "node_cost",
    "cost_seconds",
    "cost_worth",
    "cost_keep_places",
    "brake_launches",
    "brake_dollars",
)

TERMINATES_FIRST: Final = {
    "TerminateFirstDrift": DisruptionReason.DRIFTED,
    "TerminateFirstRepair": DisruptionReason.UNHEALTHY,
}


def deciding(settings: Settings) -> dict[str, Any]:
    """The settings that affect decisions, by name."""
    return {name: getattr(settings, name) for name in DECIDING}


def well_known_labels(settings: Settings) -> frozenset[str]:
    """Kubernetes' and Karpenter's, and the cloud's (PLC-35). A label that no instance type has has no effect."""
    return WELL_KNOWN_LABELS | settings.provider.labels


def placement_settings(settings: Settings) -> PlacementSettings:
    return PlacementSettings(
        preference_policy=settings.preferences,
        min_values_policy=settings.min_values,
        reserved_capacity=settings.gates["ReservedCapacity"],
        ignore_dra=settings.ignore_devices,
        default_spread=settings.default_spread,
        well_known=well_known_labels(settings),
        claims_per_pod=settings.claims_per_pod,
        brake=brake_settings(settings),
        cost=cost_settings(settings),
    )


def cost_settings(settings: Settings) -> CostSettings:
    """The settings of the policy cost, in placement and in disruption."""
    return CostSettings(
        everywhere=settings.placement_policy == "Cost",
        node_cost=settings.node_cost,
        seconds=settings.cost_seconds,
        steps=STEPS,
        stopwatch=stopwatch,
        keep_places=settings.cost_keep_places,
    )


def stopwatch(seconds: float) -> TimeLimit:
    """Whether this thread has since worked for so many seconds: on a busy machine a search covers as much as on an idle
    one, and DOVETAIL_PASS_LIMIT ends it by the clock."""
    return TimeLimit(seconds, time.thread_time)


def brake_settings(settings: Settings) -> BrakeSettings:
    return BrakeSettings(launches=settings.brake_launches, dollars=settings.brake_dollars)


def disruption_settings(settings: Settings) -> DisruptionSettings:
    return DisruptionSettings(
        nominate_for=nomination_seconds(settings.batch_max),
        spot_to_spot=settings.gates["SpotToSpotConsolidation"],
        manages_deletion_costs=settings.gates["PodDeletionCostManagement"],
        repairs=settings.repairs_by_disruption,
        terminates_first=_terminates_first(settings),
        reserved_capacity=settings.gates["ReservedCapacity"],
        min_values_policy=settings.min_values,
        preference_policy=settings.preferences,
        default_spread=settings.default_spread,
        well_known=well_known_labels(settings),
        search_seconds=settings.search_limit,
        cost=cost_settings(settings),
        worth=settings.cost_worth,
    )


def _terminates_first(settings: Settings) -> frozenset[DisruptionReason]:
    """For no reason where nobody fills the places of static NodePools again."""
    gates = settings.gates
    return frozenset(why for gate, why in TERMINATES_FIRST.items() if gates.get(gate) and gates["StaticCapacity"])
