"""Where Dovetail's decisions about disruption differ from Karpenter's.

A profile answers all of these questions. `DOVETAIL` is the one that runs; one with Karpenter's answers is kept with the
recorded results with which it is compared. Profiles differ in which valid answer is found, and in what is announced;
none makes an answer valid that the checks refuse.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dovetail.disruption.upkeep.conditions import judge_consolidatable
from dovetail.model.nodes import NodeClaim
from dovetail.model.pools import NodePool
from dovetail.placement import profiles as placement_profiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One answer to each question on which Dovetail and Karpenter differ."""

    name: str
    is_quiet: Callable[[NodeClaim, NodePool, float], bool]
    """Whether no pod came or went for the pool's consolidateAfter (DIS-167)."""
    slows_what_comes_back: bool
    """Whether consolidation rests where much of what it took was launched again within a day."""
    taken_nodes_leave: bool
    """Whether a node counts as leaving from the moment at which a plan takes it."""
    keeps_waiting_pods_apart: bool
    """Whether pods that wait for room anyway keep the nodes that they will get, and are charged to no candidate."""
    weighs_every_claim: bool
    """Whether the policy Balanced takes as a pool's cost what its claims cost, not what its candidates do (DIS-122)."""
    replaces_in_waves: bool
    """Whether one plan replaces all drifted or expired nodes that the budgets allow, not only the first (DIS-71)."""
    rules_out_by_price: bool
    """Whether prices alone can spare a candidate its simulation; its Event then names no other obstacle."""
    tries_all_together_first: bool
    """Whether multi-node consolidation tries all candidates at once before it searches for a prefix."""
    widens_the_search: bool
    """Whether multi-node consolidation goes on beyond the prefix that it has found."""
    most_consolidated: int
    """The most nodes that consolidation takes in one command (DIQ-7)."""
    needs_launchable_spot: bool
    """Whether a replacement narrowed to spot must have a spot offering available (DIQ-9)."""
    announces_probes: bool
    """Whether every command that multi-node consolidation tries is announced, not only the one that it plans."""
    announces_shared_rejections: bool
    """Whether the rejection of a command for several nodes is announced (DIQ-1)."""
    needs_a_pool: bool
    """Whether a simulation fails as a whole where no dynamic NodePool is ready (DIS-93)."""
    placement: placement_profiles.Profile
    """The placement engine's own answers."""


def _has_been_quiet(claim: NodeClaim, pool: NodePool, now: float) -> bool:
    """Judged by the facts: the condition is written some moments after them."""
    return judge_consolidatable(claim, pool, now).verdict == "set"


DOVETAIL: Final = Profile(
    name="dovetail",
    is_quiet=_has_been_quiet,
    slows_what_comes_back=True,
    taken_nodes_leave=True,
    keeps_waiting_pods_apart=True,
    weighs_every_claim=True,
    replaces_in_waves=True,
    rules_out_by_price=True,
    tries_all_together_first=True,
    widens_the_search=True,
    most_consolidated=100,
    needs_launchable_spot=True,
    announces_probes=False,
    announces_shared_rejections=True,
    needs_a_pool=False,
    placement=placement_profiles.DOVETAIL,
)
