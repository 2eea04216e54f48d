"""How does a new node enter a plan?

A plan holds each list of instance types once, because with up to 600 names for each node it would become too large; a
node refers to its list by index. The requirements are narrowed here to the capacity types in which the listed types are
offered.
"""

from collections import Counter
from collections.abc import Iterable

from dovetail.messages.plans import PlannedPod, ProposedNode
from dovetail.model import names
from dovetail.model.places.placements import NewNode
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import Requirement, compatible, export_set, from_expressions, merge
from dovetail.placement.buffers.virtual_pods import buffer_uid, is_virtual


def _capacity_types(node: NewNode, well_known: frozenset[str]) -> frozenset[str]:
    """The capacity types of available offerings that suit the node (PLC-196)."""
    found: set[str] = set()
    for offering in dict.fromkeys(o.requirements for item in node.types for o in item.offerings if o.available):
        requirements = from_expressions(offering)
        item = requirements.get(names.CAPACITY_TYPE)
        if item is not None and not item.values <= found and compatible(node.requirements, requirements, well_known):
            found |= item.values
    return frozenset(found)


def claim_requirements(node: NewNode, well_known: frozenset[str]) -> tuple[Expression, ...]:
    """Everything that the claim requires, the names of its types included (PLC-196, PLC-197)."""
    listed = frozenset(item.name for item in node.types)
    added = {names.INSTANCE_TYPE: Requirement(key=names.INSTANCE_TYPE, complement=False, values=listed)}
    if offered := _capacity_types(node, well_known):
        added[names.CAPACITY_TYPE] = Requirement(key=names.CAPACITY_TYPE, complement=False, values=offered)
    return export_set(merge(node.requirements, added))


def proposed_nodes(
    nodes: Iterable[NewNode], well_known: frozenset[str]
) -> tuple[tuple[ProposedNode, ...], tuple[tuple[str, ...], ...]]:
    """The nodes as a plan holds them, and the lists of type names that they refer to."""
    lists: dict[tuple[str, ...], int] = {}
    found: list[ProposedNode] = []
    for node in nodes:
        names_in_order = tuple(item.name for item in node.types)
        number = lists.setdefault(names_in_order, len(lists))
        requirements = claim_requirements(node, well_known)
        of_types = next((e for e in requirements if e.key == names.INSTANCE_TYPE), None)
        found.append(
            ProposedNode(
                pool=node.pool,
                pool_uid=node.pool_uid,
                node_class=node.node_class,
                requirements=tuple(e for e in requirements if e.key != names.INSTANCE_TYPE),
                type_list=number,
                min_types=of_types.min_values if of_types is not None else None,
                requests=tuple(sorted(node.requests.items())),
                labels=tuple(sorted(node.labels.items())),
                annotations=tuple(sorted(node.annotations.items())),
                taints=node.taints,
                startup_taints=node.startup_taints,
                expire_after=node.expire_after,
                termination_grace=node.termination_grace,
                pods=tuple(
                    PlannedPod(namespace=p.namespace, name=p.name, uid=p.uid) for p in node.pods if not is_virtual(p)
                ),
                buffers=_virtual_pods_by_buffer(node),
            )
        )
    return tuple(found), tuple(lists)


def _virtual_pods_by_buffer(node: NewNode) -> tuple[tuple[str, int], ...]:
    """The number of virtual pods of each buffer. No Event is about them, and their names would fill a plan."""
    return tuple(sorted(Counter(buffer_uid(pod) for pod in node.pods if is_virtual(pod)).items()))
