"""What may be chosen about disruption, with the product's defaults.

Filled by worker/settings.py. `upstream()` is the set of choices under which our decisions equal upstream's; the
recorded results are compared under it. The trap avoided: a switch that changes which answers are valid rather than
which valid answer is found.
"""

from dataclasses import dataclass
from typing import Literal

from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.pods import SpreadConstraint


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionSettings:
    """The switches. The first block is upstream's flags and gates; the second is where we differ."""

    spot_to_spot: bool = False
    reserved_capacity: bool = True
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    default_spread: tuple[SpreadConstraint, ...] = ()
    validate_after: float = 15.0  # seconds between decision and second look (D-132)
    well_known: frozenset[str] = WELL_KNOWN_LABELS

    waves: bool = True  # drift and expiry: all that the budget allows in one plan
    promises: bool = True  # room promised to pods on their way is nobody else's
    facts: bool = True  # quiet time is computed, not read from the Consolidatable condition
    taken_leave: bool = True  # a node that a plan has taken counts as leaving from that moment
    tracked_cost: bool = True  # Balanced: a pool costs what its claims cost, not what its candidates cost
    multi_search: Literal["prefix", "wide"] = "wide"
    patient: bool = True  # a node that is still starting is not told that it cannot be disrupted
    look_ahead: bool = True  # a plan that waits 15 s may begin its wait while the nodes before it are drained
    tell_all: bool = True  # every rejected consolidation is told, multi-node ones too
    mend: bool = True  # batches of at most 100, no launch that is certain to fail
    shortcuts: bool = True  # a node that prices alone rule out is not simulated; its Event then says only that
    wave_size: int = 100  # commands of one plan
    most_targets: int = 500  # empty nodes of one command: a plan stays under 200 KiB, the rest goes in the next
    plan_bytes: int = 200 * 1024  # a wave ends where its plan would grow beyond


def upstream(spot_to_spot: bool = False) -> DisruptionSettings:
    """The choices that upstream has made."""
    return DisruptionSettings(
        spot_to_spot=spot_to_spot,
        waves=False,
        promises=False,
        facts=False,
        taken_leave=False,
        tracked_cost=False,
        patient=False,
        look_ahead=False,
        tell_all=False,
        mend=False,
        shortcuts=False,
        most_targets=2**31,
        multi_search="prefix",
    )
