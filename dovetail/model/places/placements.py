"""Placement: which pod goes where, and why the others cannot.

Provisioning turns the new nodes of a placement into a plan, disruption reads from it whether nodes may leave, and
`dovetail explain` prints it. The reasons are a closed list, so they can be counted and worded without parsing text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dovetail.model.nodes import NodeClassRef
from dovetail.model.objects.judging import Unjudged
from dovetail.model.pods import Pod
from dovetail.model.pools import InstanceType
from dovetail.model.scheduling.requirements import RequirementSet
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.resources import Resources

# Why one NodePool (or every existing node) did not take a pod.
Reason = Literal[
    "taints",
    "undefined_label",
    "requirements",
    "volume_requirements",
    "topology_spread",
    "pod_affinity",
    "pod_anti_affinity",
    "limits",
    "node_limits",
    "min_values",
    "reserved_offering",
    "no_nodepool_instance_types",
    "dra",
    "devices",
    "host_ports",
    "it_requirements",
    "it_fits",
    "it_offering",
    "it_requirements_fits",
    "it_requirements_offering",
    "it_fits_offering",
    "it_requirements_fits_offering",
    "it_pair_requirements_fits",
    "it_pair_requirements_offering",
    "it_pair_fits_offering",
    "it_tuple",
    "uninitialized_node",
    "not_reached",
    "volume_lookup",
    "not_judged",
    "launches_stopped",
    "launches_paused",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRefusal:
    """Why one NodePool cannot take a pod, with words for the conflict and for what would have helped."""

    pool: str
    reason: Reason
    conflict: str = ""
    remedy: str = ""
    within: Reason | None = None  # the reason behind the reason: volumes that ask for a label no node has
    daemon_sets: tuple[str, ...] = ()  # without which some type would have room

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reason, and the one behind it."""
        return (self.reason,) if self.within is None else (self.reason, self.within)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPod:
    """A pod that found no place, with each pool's reason in the order in which the pools were tried."""

    pod: Pod
    pools: tuple[PoolRefusal, ...]
    existing: Mapping[str, int] = field(default_factory=dict)  # reason -> the number of existing nodes
    begun: bool = False  # not reached, as it took the rest of the time itself: in the next pass all others come first

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons in order, without immediate repeats."""
        result: list[Reason] = []
        for reason in (reason for refusal in self.pools for reason in refusal.reasons):
            if not result or result[-1] != reason:
                result.append(reason)
        return tuple(result)

    @property
    def is_not_reached(self) -> bool:
        """Whether the pass had no time for it: then nothing is known of where it could go."""
        return self.reasons == ("not_reached",)

    @property
    def waits_for_reservation(self) -> bool:
        """Whether the pod waits for reserved capacity in a later pass, and is not unschedulable (PLC-186)."""
        return any(refusal.reason == "reserved_offering" for refusal in self.pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredPod:
    """A pending pod that takes no part (PLC-21), and why. `silent`: no Event is published (PLC-22)."""

    pod: Pod
    why: str
    silent: bool = False
    earlier_claim: Literal["", "awaited", "exhausted", "refused"] = ""  # PLQ-32: claims were made, or tried, before


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node to create: everything in its claim, and the types that it may become, in price order."""

    pool: str
    pool_uid: str = ""
    node_class: NodeClassRef
    requirements: RequirementSet  # PLC-190: without hostname and the two keys of the simulation
    types: tuple[InstanceType, ...]
    requests: Resources
    pods: tuple[Pod, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: float | None = None
    termination_grace: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyPool:
    """A NodePool that is left without instance types (PLC-60), and whether its minimum values are the reason."""

    pool: str
    because_of_min_values: bool
    suiting: bool = False  # types suit its requirements, and cannot be had now
    too_few: str = ""  # of what minimum values that all of these would meet, and what can be had now does not
    closed: str = ""  # why, as far as offerings say

    @property
    def words(self) -> str:
        return "; ".join(filter(None, (self.too_few, self.closed)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    new: tuple[NewNode, ...] = ()
    existing: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)  # node name, or claim name before it joins
    refused: tuple[RefusedPod, ...] = ()
    ignored: tuple[IgnoredPod, ...] = ()
    empty_pools: tuple[EmptyPool, ...] = ()
    oversized: tuple[tuple[str, str], ...] = ()  # DaemonSets that no type of a NodePool holds, with the pool
    by_zone: Mapping[str, int] = field(default_factory=dict)  # PLC-232: pending pods by the zone that they are bound to
    unjudged: tuple[Unjudged, ...] = ()  # objects that were set aside
    complete: bool = True  # False: the time was up; pods not reached are refused as such (PLQ-23)

    @property
    def late(self) -> frozenset[str]:
        """The UIDs of the pods that come first in the next pass (PLQ-23)."""
        return frozenset(each.pod.uid for each in self.refused if each.is_not_reached and not each.begun)

    @property
    def nominated(self) -> tuple[str, ...]:
        """The existing nodes that pods are expected on, sorted (PLC-225)."""
        return tuple(sorted(self.existing))
