"""What would have helped?

Kept apart from the reasons: advice may be improved without a change of answers.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dovetail.model.places.placements import Reason
from dovetail.model.values.resources import format_amount
from dovetail.placement.constraints.demands import Demand
from dovetail.placement.facts.templates import Template

_BY_REASON: Final[Mapping[Reason, str]] = {
    "taints": "a toleration on the pod, or no such taint on the pool",
    "undefined_label": "a requirement or a template label for that key on the pool",
    "requirements": "a value that both the pod and the pool allow",
    "volume_requirements": "a pool that reaches the zones of the pod's volumes",
    "topology_spread": "a larger maxSkew, fewer minDomains, or nodes in the emptier domains",
    "pod_affinity": "a running pod that the term selects, in a domain that the pool reaches",
    "pod_anti_affinity": "a domain without such pods; one whose zone is still open blocks all its zones until it runs",
    "limits": "higher spec.limits on the pool, or smaller types in it",
    "node_limits": "a higher limit of nodes on the pool",
    "min_values": "a lower minValues, or the policy BestEffort",
    "reserved_offering": "nothing: it is tried again when reserved capacity is given back",
    "no_nodepool_instance_types": "a pool whose requirements leave an instance type that can be had",
    "dra": "no resource claims, or IGNORE_DRA_REQUESTS=false",
    "devices": "resource claims for devices that an instance type of the pool is known to bring",
    "it_requirements": "pool and pod requirements that some instance type meets",
    "it_offering": "another zone or capacity type: what suits is not to be had now",
    "volume_lookup": "the missing volume or storage class",
    "not_reached": "nothing: the next pass tries it",
}


def _largest(demand: Demand, template: Template, rows: int, dimensions: Sequence[str]) -> str:
    """The resources of which no type has enough, with the most that any type has."""
    room = [have for row, have in enumerate(template.fit.room) if rows >> row & 1]
    lacking = []
    for index, (name, wanted) in enumerate(zip(dimensions, demand.wanted, strict=True)):
        most = max((have[index] for have in room), default=0)
        if wanted > most:
            lacking.append(f"{name} {format_amount(name, wanted)} of at most {format_amount(name, max(0, most))}")
    return ", ".join(lacking)


def beside(daemon_sets: Sequence[str]) -> str:
    """Advice if only DaemonSets are in the pod's way; empty if none is."""
    if not daemon_sets:
        return ""
    return f"less requested by DaemonSets {', '.join(daemon_sets)}, fewer nodes for them, or a larger instance type"


def remedy(reason: Reason, demand: Demand, template: Template, dimensions: Sequence[str]) -> str:
    """Advice for one pool's refusal."""
    if reason in ("it_fits", "it_requirements_fits_offering", "it_requirements_fits", "it_fits_offering"):
        lacking = _largest(demand, template, template.rows, dimensions)
        if lacking:
            return f"a larger instance type: the pod asks for {lacking}"
    return _BY_REASON.get(reason, "an instance type that meets requirements, room and offering at once")
