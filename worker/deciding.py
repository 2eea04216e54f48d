"""The settings of a process as placement and disruption take them."""

from dovetail.disruption.settings import DisruptionSettings
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.placement.settings import PlacementSettings
from dovetail.worker.settings import Settings
from dovetail.worker.wiring import CLOUD_LABELS

# PLC-35: Kubernetes' and Karpenter's well-known labels and the cloud's. One that no instance type has has no effect.
WELL_KNOWN = WELL_KNOWN_LABELS | CLOUD_LABELS


def placement_settings(settings: Settings) -> PlacementSettings:
    """For placement."""
    return PlacementSettings(
        preference_policy=settings.preferences,
        min_values_policy=settings.min_values,
        reserved_capacity=settings.gates["ReservedCapacity"],
        default_spread=settings.default_spread,
        well_known=WELL_KNOWN,
    )


def disruption_settings(settings: Settings) -> DisruptionSettings:
    """For disruption."""
    return DisruptionSettings(
        spot_to_spot=settings.gates["SpotToSpotConsolidation"],
        reserved_capacity=settings.gates["ReservedCapacity"],
        min_values_policy=settings.min_values,
        preference_policy=settings.preferences,
        default_spread=settings.default_spread,
        well_known=WELL_KNOWN,
    )
