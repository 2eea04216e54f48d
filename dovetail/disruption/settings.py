"""The settings of disruption: Karpenter's options and gates, our limits, and the profile to decide by."""

import math
from dataclasses import dataclass, field
from typing import Literal

from dovetail.disruption.profiles import DOVETAIL, Profile
from dovetail.messages.plans import NOMINATION_SECONDS
from dovetail.messages.sizes import PLAN_BYTES
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.pods import SpreadConstraint
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.placement.settings import CostSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionSettings:
    """One set of choices, which applies to everything in one round."""

    spot_to_spot: bool = False
    reserved_capacity: bool = True
    manages_deletion_costs: bool = False  # the gate PodDeletionCostManagement: pods' deletion costs are ours
    repairs: bool = False  # the gate NodeRepair, and neither LEGACY_NODE_REPAIR nor DOVETAIL_KEEP_WAY_BACK
    terminates_first: frozenset[DisruptionReason] = frozenset()  # the gates TerminateFirstDrift, TerminateFirstRepair
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    default_spread: tuple[SpreadConstraint, ...] = ()
    well_known: frozenset[str] = WELL_KNOWN_LABELS
    nominate_for: float = NOMINATION_SECONDS  # where pods are expected after a disruption
    validate_after: float = 15.0  # seconds between a plan and its second look (DIS-132)
    search_seconds: float = math.inf  # how long one round may search before it answers with what it has

    wave_size: int = 100  # commands of one plan
    most_targets: int = 500  # empty nodes of one command; the others follow in the next
    plan_bytes: int = PLAN_BYTES  # a plan ends before it becomes larger than this, encoded

    # Which pools are under the policy cost, and for how long cheaper nodes are looked for.
    cost: CostSettings = field(default_factory=CostSettings)
    # A cheaper set of nodes must save this share of what a pod costs on average, for each pod that it moves.
    worth: float = 0.7
    cheaper_seconds: float = 5.0  # how long one round looks for cheaper sets, by the stopwatch of `cost`

    profile: Profile = DOVETAIL
