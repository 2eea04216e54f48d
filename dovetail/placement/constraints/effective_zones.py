"""To which zone is each pending pod bound, before anything is placed?

For a metric of provisioning (PLC-231, PLC-232): people who watch a shortage want to know which zone's pods wait. What
counts is the pod's own selector, its volumes and its groups on the zone, as far as they name zones; together they leave
one zone, several, or none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from dovetail.model.names import ZONE
from dovetail.model.scheduling.requirements import Requirement
from dovetail.placement.constraints.demands import ShapeInPass
from dovetail.placement.constraints.domain_choices import allowed_domains

FLEXIBLE: Final = "flexible"
NOWHERE: Final = "none"


def _listed(item: Requirement | None) -> frozenset[str] | None:
    return item.values if item is not None and item.operator == "In" else None


def effective_zone(shape: ShapeInPass) -> str:
    """The name of the one zone, or a word for several or for none."""
    facts = shape.facts
    strict = facts.strict.requirements.get(ZONE)
    named: list[Iterable[str]] = []
    own = _listed(strict)
    if own is not None:
        named.append(own)
    volumes = [_listed(alternative.requirements.get(ZONE)) for alternative in facts.alternatives]
    pinned = [zones for zones in volumes if zones is not None]
    if len(pinned) == len(volumes):
        named.append(frozenset().union(*pinned))
    groups = [(group, counts) for group, counts in shape.by_key.get(ZONE, ()) if group.term.kind != "inverse"]
    if groups:
        named.append(allowed_domains(groups, strict))
    if not named:
        return FLEXIBLE
    left = set(named[0]).intersection(*named[1:])
    return NOWHERE if not left else min(left) if len(left) == 1 else FLEXIBLE


def count_by_zone(shapes: Iterable[ShapeInPass], known: Collection[str]) -> Mapping[str, int]:
    """The number of pods by zone, given the shape of each pod. `known`: the zones that have nodes or could have them;
    one that only a pod names counts as none, since each pod could make a series of its own by another name."""
    found: dict[str, int] = {}
    for shape, pods in Counter(shapes).items():
        zone = effective_zone(shape)
        zone = zone if zone == FLEXIBLE or zone in known else NOWHERE
        found[zone] = found.get(zone, 0) + pods
    return dict(sorted(found.items()))
