"""What may be set about placement, and which of upstream's defects are mended.

Asked for by every entry of this package. The fixes are on by default and all off for comparison with recorded results
(`Fixes.none()`); each names the row of the specification's list of defects that it answers.
"""

from dataclasses import dataclass, field
from typing import Literal

from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.pods import SpreadConstraint

# S-137: how many instance types a claim may list.
MAX_TYPES = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """One switch per defect."""

    count_node_limits: bool = True  # each new claim counts against limits.nodes
    exact_spread_identity: bool = True  # spreads that differ in filter values or minDomains stay apart
    no_phantom_domains: bool = True  # a value that a requirement excludes is no domain
    keep_daemon_terms: bool = True  # a daemon's or-ed terms are judged afresh for every type and pool
    agree_before_picking: bool = True  # two spreads on one key pick a domain that suits both
    refuse_unknown_volumes: bool = True  # a pod whose volumes cannot be looked up is refused
    skip_ending_pods: bool = True  # no node for a pod that has ended or is being deleted
    seed_new_groups: bool = True  # a spread first seen in mid-pass counts the placements made so far
    own_relaxed_mark: bool = True  # S-125: upstream marks all claims of a pool as it marked the last one

    @staticmethod
    def none() -> "Fixes":
        """Exactly upstream."""
        return Fixes(
            count_node_limits=False,
            exact_spread_identity=False,
            no_phantom_domains=False,
            keep_daemon_terms=False,
            agree_before_picking=False,
            refuse_unknown_volumes=False,
            skip_ending_pods=False,
            seed_new_groups=False,
            own_relaxed_mark=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings:
    """Upstream's options that bear on placement, under upstream's defaults."""

    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    reserved_capacity: bool = True  # feature gate ReservedCapacity
    ignore_dra: bool = True
    default_spread: tuple[SpreadConstraint, ...] = ()
    well_known: frozenset[str] = WELL_KNOWN_LABELS  # a provider adds its own labels
    unsupported_provisioners: frozenset[str] = frozenset()
    unsupported_topology_keys: frozenset[str] = frozenset()
    max_types: int = MAX_TYPES
    default_termination_grace: float | None = None
    fixes: Fixes = field(default_factory=Fixes)
