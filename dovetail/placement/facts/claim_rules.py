"""What may pods add to a NodeClaim, and how much?

What a pod selects by becomes requirements and labels of the NodeClaim that is made for it. The API server refuses a
claim for one wrong key or too many keys, and that stops every pod that was planned onto the node, no matter who wrote
the key. So a pod that would add what the definition refuses is refused alone, and no node draft takes a pod that would
make its claim too large.
"""

from collections.abc import Iterable
from typing import Final

from dovetail.api.claim_requirements import requirement_faults
from dovetail.api.schema.requirements import MOST_REQUIREMENTS
from dovetail.model import names
from dovetail.model.pods import Expression, Pod, PodShape
from dovetail.model.scheduling.requirements import Requirement, RequirementSet, export
from dovetail.model.values.remembering import MEGABYTE, remembered

# Labels that a node will have when pods run on it, and that no claim asks for.
SIMULATION_KEYS: Final = frozenset({names.REGISTERED, names.INITIALIZED})

# Of one pod. Karpenter knows some thirty labels that pods have a reason to select by; names and values are short.
POD_LABELS: Final = 50
POD_BYTES: Final = 16 * 1024
POD_RESOURCES: Final = 50
# Of all pods of a node: a fifth of what a plan may hold, which leaves room for the names of the pods and of the types.
CLAIM_BYTES: Final = 64 * 1024

_NOT_WRITTEN: Final = SIMULATION_KEYS | {names.HOSTNAME}
# Requirements that a launch adds: the types, the offered capacity types, the held reservation.
_ADDED: Final = 3
_ENTRY: Final = 60  # bytes of an entry besides its values and its key, which is also among the labels

TOO_LARGE: Final = "with it the NodeClaim would have more requirements than the API server takes"


def requirement_fault(item: Requirement) -> str:
    """What the definition of NodeClaim refuses about a requirement; empty if it accepts it."""
    if item.key in _NOT_WRITTEN:
        return ""
    written = tuple((each.operator, each.values) for each in export(item))
    return _fault(item.key, written, () if item.complement else tuple(sorted(item.values)))


@remembered(MEGABYTE)
def _fault(key: str, written: tuple[tuple[str, tuple[str, ...]], ...], values: tuple[str, ...]) -> str:
    entries = [{"key": key, "operator": operator, "values": list(operands)} for operator, operands in written]
    faults = requirement_faults(key, entries, values)
    return f"no NodeClaim can require label {key}: {faults[0]}" if faults else ""


def set_fault(items: RequirementSet) -> str:
    """The first fault of a requirement set, by key."""
    return next((fault for key in sorted(items) if (fault := requirement_fault(items[key]))), "")


def entries_of(items: RequirementSet) -> int:
    """How many requirements a claim would have, including those that a launch may add."""
    written = [item for key, item in items.items() if key not in _NOT_WRITTEN]
    both = sum(1 for item in written if item.gte is not None and item.lte is not None)
    added = _ADDED - (names.INSTANCE_TYPE in items) - (names.CAPACITY_TYPE in items)
    return len(written) + both + added


def bytes_of(items: RequirementSet) -> int:
    """Roughly how many bytes they take on a claim; the names of the types are counted elsewhere."""
    return sum(
        2 * len(key) + _ENTRY + sum(map(len, item.values)) + 3 * len(item.values)
        for key, item in items.items()
        if key not in _NOT_WRITTEN and key != names.INSTANCE_TYPE
    )


def outgrows(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether a claim with this many requirements and bytes is too large and has grown."""
    return after[0] > max(MOST_REQUIREMENTS, before[0]) or after[1] > max(CLAIM_BYTES, before[1])


def shape_excess(shape: PodShape) -> str:
    """In what way a pod asks unreasonably much of its node; empty if it does not."""
    own = [Expression(key=key, operator="In", values=(value,)) for key, value in shape.node_selector]
    terms = [term.expressions for term in shape.required_terms] or [()]
    return next((fault for term in terms if (fault := _excess(own, term))), "")


def _excess(own: Iterable[Expression], term: Iterable[Expression]) -> str:
    expressions = [*own, *term]
    labels = len({expression.key for expression in expressions})
    if labels > POD_LABELS:
        return f"it selects nodes by {labels} labels in one term, more than {POD_LABELS}"
    size = sum(len(e.key) + sum(map(len, e.values)) for e in expressions)
    if size > POD_BYTES:
        return f"its node selector and one term of its node affinity have {size} bytes, more than {POD_BYTES}"
    return ""


def requests_excess(pod: Pod) -> str:
    """Why a claim cannot carry the pod's requests: it names each resource, even those requested at zero."""
    count = len(pod.requests)
    return f"it asks for {count} resources, more than {POD_RESOURCES}" if count > POD_RESOURCES else ""
