"""Which instance type and tenancy the dry runs of a class ask for (AWS-44)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.node_class.conditions import Verdict, false
from dovetail.adapters.aws.node_class.node_class import NodeClass, image_for
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.requirements import conflicts, from_expressions

_FALLBACK: Final = ("m5.large", "m6g.large")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialType:
    """The type that is tried, and its image."""

    sized: SizedType
    image: str


def trial_type(
    node_class: NodeClass, types: Mapping[str, SizedType], pools: tuple[NodePool, ...]
) -> TrialType | Verdict:
    """A type that a pool of the class allows and an image suits; if no pool narrows it, a common one (AWS-44)."""
    compatible = [types[name] for name in sorted(types) if not types[name].unsuited and types[name].zones]
    if not compatible:
        return _incompatible("no instance type that the region offers is compatible with the class")
    images = {each.facts.name: image_for(node_class.images, each.requirements) for each in compatible}
    usable = [TrialType(sized=each, image=image) for each in compatible if (image := images[each.facts.name])]
    if not usable:
        return _incompatible("no image of the class suits any compatible instance type")
    ours = [pool for pool in pools if pool.template.node_class.name == node_class.name]
    wanted = {each.facts.name for each in compatible if any(_wants(pool, each) for pool in ours)}
    if wanted:
        found = next((each for each in usable if each.sized.facts.name in wanted), None)
        return found or _incompatible("no image of the class suits any instance type that its NodePools allow")
    return next((each for each in usable if each.sized.facts.name in _FALLBACK), usable[0])


def _incompatible(message: str) -> Verdict:
    return false("NoCompatibleInstanceTypes", message)


def trial_tenancy(node_class: NodeClass, pools: tuple[NodePool, ...]) -> str:
    """Dedicated if a pool of the class allows it, else shared (AWS-44)."""
    ours = [pool for pool in pools if pool.template.node_class.name == node_class.name]
    tenancies = [from_expressions(pool.template.requirements).get(names.TENANCY) for pool in ours]
    return "dedicated" if any(each is not None and each.has("dedicated") for each in tenancies) else "default"


def _wants(pool: NodePool, sized: SizedType) -> bool:
    return not conflicts(sized.requirements, from_expressions(pool.template.requirements))
