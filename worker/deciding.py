"""The settings of a process as the two engines know them.

Asked by the composition root for the planners and by the CLI for `explain` and `plan`: an explanation under other
settings than the decision would be a lie.
"""

from core.disruption.settings import DisruptionSettings
from core.scheduling.settings import PlacementSettings
from worker.settings import Settings


def placement_settings(settings: Settings) -> PlacementSettings:
    """For placement."""
    return PlacementSettings(
        preference_policy=settings.preferences,
        min_values_policy=settings.min_values,
        reserved_capacity=settings.gates["ReservedCapacity"],
    )


def disruption_settings(settings: Settings) -> DisruptionSettings:
    """For disruption."""
    return DisruptionSettings(
        spot_to_spot=settings.gates["SpotToSpotConsolidation"],
        reserved_capacity=settings.gates["ReservedCapacity"],
        min_values_policy=settings.min_values,
        preference_policy=settings.preferences,
    )
