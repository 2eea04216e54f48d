"""The second look at a plan, where a test asks for its verdict alone."""

from dovetail.disruption.revalidate import Validity, look_again
from dovetail.disruption.rounds import Round, never
from dovetail.disruption.settings import DisruptionSettings
from dovetail.messages.plans import DisruptionPlan
from dovetail.model.snapshot import Snapshot


def revalidate(plan: DisruptionPlan, snapshot: Snapshot, settings: DisruptionSettings) -> Validity:
    """What is left of the plan on this snapshot."""
    return look_again(plan, Round(snapshot, settings, never)).validity
