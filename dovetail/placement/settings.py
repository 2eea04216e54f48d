"""The settings of placement: Karpenter's options with Karpenter's defaults, and the profile to decide by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.pods import SpreadConstraint
from dovetail.placement.profiles import DOVETAIL, Profile

__all__ = ["DOVETAIL", "MAX_TYPES", "CostSettings", "PlacementSettings", "Profile", "Stopwatch"]

# PLC-137: how many instance types a claim may list.
MAX_TYPES = 600
# How many claims are made within an hour for one pod that runs on none of their nodes; 0: no limit.
CLAIMS_PER_POD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeSettings:
    """When launches stop for an owner, a namespace or a pool; 0 turns a rule off."""

    launches: int = 10  # unexplained ones within an hour, if they are at least half of all launches
    dollars: float = 100.0  # an hour, added within ten minutes by unexplained launches


Stopwatch = Callable[[float], Callable[[], bool]]


def without_clock(_: float) -> Callable[[], bool]:
    """A stopwatch that never rings: the number of steps alone ends a search, and the answer is always the same."""
    return lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    """How to search for cheaper nodes, and for which pools."""

    everywhere: bool = False  # for pools that do not say
    node_cost: float = 0.0  # dollars an hour that a node costs besides its instance
    seconds: float = 1.0  # how long to search, for each thousand pods begun
    steps: int = 300  # at most this many, for each thousand pods begun
    seed: int = 1
    spot_chance: float = 0.5  # of a pool of spot capacity, that much is left; AWS takes the cheapest such pool
    types: int = 15  # a node keeps at least this many to choose from; spot-to-spot consolidation needs as many
    stopwatch: Stopwatch = without_clock  # rings after the given seconds
    keep_places: bool = True  # pods are nominated for the nodes that are made for them


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings:
    """One set of choices; it holds for everything that is asked of one index."""

    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    reserved_capacity: bool = True  # feature gate ReservedCapacity
    ignore_dra: bool = True
    default_spread: tuple[SpreadConstraint, ...] = ()
    well_known: frozenset[str] = WELL_KNOWN_LABELS  # a provider adds its own labels
    unsupported_provisioners: frozenset[str] = frozenset()
    unsupported_topology_keys: frozenset[str] = frozenset()
    max_types: int = MAX_TYPES
    claims_per_pod: int = CLAIMS_PER_POD
    brake: BrakeSettings = BrakeSettings()
    profile: Profile = DOVETAIL
    cost: CostSettings = CostSettings()

    @property
    def respects_preferences(self) -> bool:
        """Whether what a pod merely prefers is tried before it is given up."""
        return self.preference_policy == "Respect"
