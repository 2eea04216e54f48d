"""What would have helped?

Kept apart from the reasons: advice may be improved without a change of answers.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dovetail.model.places.placements import Reason
from dovetail.model.values.resources import Resources, format_amount
from dovetail.placement.facts.claim_rules import POD_RESOURCES
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


def _lacking(requests: Resources, template: Template) -> str:
    """The resources of which no type has enough, with the most that any type has."""
    room = [have for row, have in enumerate(template.fit.room) if template.rows >> row & 1]
    largest = {
        name: max((have[index] for have in room), default=0)
        for index, name in enumerate(template.table.dimensions.names)
    }
    lacking = [
        f"{name} {format_amount(name, wanted)} of at most {format_amount(name, most)}"
        for name, wanted in sorted(requests.items())
        if wanted > (most := max(0, largest.get(name, 0)))
    ]
    return ", ".join(lacking[:POD_RESOURCES])


def beside(daemon_sets: Sequence[str]) -> str:
    """Advice if only DaemonSets are in the pod's way; empty if none is."""
    if not daemon_sets:
        return ""
    return f"less requested by DaemonSets {', '.join(daemon_sets)}, fewer nodes for them, or a larger instance type"


def remedy(reason: Reason, requests: Resources, template: Template) -> str:
    """Advice for one pool's refusal of a pod that requests that much."""
    if reason in ("it_fits", "it_requirements_fits_offering", "it_requirements_fits", "it_fits_offering"):
        lacking = _lacking(requests, template)
        if lacking:
            return f"a larger instance type: the pod asks for {lacking}"
    return _BY_REASON.get(reason, "an instance type that meets requirements, room and offering at once")
