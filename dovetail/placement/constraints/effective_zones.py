"""To which zone is each pending pod bound, before anything is placed?

Asked once per provisioning round, for a metric (S-231, S-232): people who watch a shortage want to know which zone's
pods wait. What counts is the pod's own selector, its volumes and the groups that it owns on the zone, each where it
says anything; what is left of all of them is a zone, a choice of zones, or nowhere.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.model.names import ZONE
from dovetail.model.requirements import Requirement
from dovetail.placement.constraints.domain_choices import allowed_domains
from dovetail.placement.search.demands import ShapeInPass

FLEXIBLE: Final = "flexible"
NOWHERE: Final = "none"


def _listed(item: Requirement | None) -> frozenset[str] | None:
    return item.values if item is not None and item.operator == "In" else None


def effective_zone(shape: ShapeInPass) -> str:
    """A zone's name, or whether there are several or none."""
    facts = shape.facts
    strict = facts.strict.requirements.get(ZONE)
    said: list[Iterable[str]] = []
    own = _listed(strict)
    if own is not None:
        said.append(own)
    volumes = [_listed(alternative.requirements.get(ZONE)) for alternative in facts.alternatives]
    pinned = [zones for zones in volumes if zones is not None]
    if len(pinned) == len(volumes):
        said.append(frozenset().union(*pinned))
    groups = [(group, counts) for group, counts in shape.by_key.get(ZONE, ()) if group.term.kind != "inverse"]
    if groups:
        said.append(allowed_domains(groups, strict))
    if not said:
        return FLEXIBLE
    left = set(said[0]).intersection(*said[1:])
    return NOWHERE if not left else min(left) if len(left) == 1 else FLEXIBLE


def count_by_zone(shapes: Iterable[ShapeInPass]) -> Mapping[str, int]:
    """How many pods there are of each zone; one shape per pod."""
    found: dict[str, int] = {}
    for shape, pods in Counter(shapes).items():
        zone = effective_zone(shape)
        found[zone] = found.get(zone, 0) + pods
    return dict(sorted(found.items()))
