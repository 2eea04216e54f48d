"""What can be wrong with a NodePool or NodeOverlay that the API server let through (API-18, API-19, API-25,
NPL-20)?

Each fault is one sentence with the field in front; no fault means valid. These checks do not repeat the CRD's. They see
what a schema cannot: values of requirements, length of key parts, one taint in two lists, a capacity type that does not
exist. Domains are also compared otherwise: `foo-karpenter.sh` is stopped by the CRD alone.
"""

import re
from collections.abc import Iterator

from dovetail.api.karpenter.node_overlay import ORDINARY_RESOURCES, NodeOverlaySpec
from dovetail.api.karpenter.node_pool import NodePoolSpec, TemplateSpec
from dovetail.api.karpenter.node_template import Taint
from dovetail.api.schema.field_types import LABEL_VALUE, QUALIFIED_NAME
from dovetail.api.schema.label_keys import CAPACITY_TYPE, HOSTNAME, NODE_POOL, WELL_KNOWN
from dovetail.api.schema.requirements import COMPARISONS, FlexibleRequirement, Requirement, is_whole_number

# API-18: only Karpenter and its provider name labels in these domains or below them.
CLOSED_DOMAINS = ("karpenter.sh", "karpenter.k8s.aws")
CAPACITY_TYPES = frozenset(("spot", "on-demand", "reserved"))
LONGEST_PREFIX = 253
LONGEST_NAME = 63


def node_pool_faults(spec: NodePoolSpec) -> tuple[str, ...]:
    """Everything that is wrong with the pool's template; empty if it may be used."""
    template = spec.template
    labels = (template.metadata and template.metadata.labels) or {}
    return (*_label_faults(labels), *_taint_faults(template.spec), *_pool_requirement_faults(template.spec))


def node_overlay_faults(spec: NodeOverlaySpec) -> tuple[str, ...]:
    """Everything that is wrong with the overlay; empty if it may be used."""
    ordinary = sorted(set(spec.capacity or ()) & set(ORDINARY_RESOURCES))
    return (
        *(_at(item, fault) for item in spec.requirements for fault in _requirement_faults(item)),
        *(_at(item, _NO_VALUE) for item in spec.requirements if item.operator == "NotIn" and not item.values),
        *(f"capacity[{name}]: an overlay cannot change it" for name in ordinary),
    )


def is_restricted(key: str) -> bool:
    """API-18: whether a label may not be named by users."""
    if key in WELL_KNOWN:
        return False
    domain = key.partition("/")[0] if "/" in key else ""
    return key == HOSTNAME or any(domain == closed or domain.endswith("." + closed) for closed in CLOSED_DOMAINS)


def is_qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return (
        _matches(QUALIFIED_NAME, text)
        and len(name) <= LONGEST_NAME
        and (not slash or 0 < len(prefix) <= LONGEST_PREFIX)
    )


def is_label_value(text: str) -> bool:
    return _matches(LABEL_VALUE, text) and len(text) <= LONGEST_NAME


def _matches(pattern: str, text: str) -> bool:
    # `$` of `re` also matches before a last line break; the API's patterns mean the very end.
    return re.search(pattern, text) is not None and not text.endswith("\n")


def _label_faults(labels: dict[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        if key == NODE_POOL or is_restricted(key):
            yield f"labels[{key}]: the label is restricted"
        if not is_qualified_name(key):
            yield f"labels[{key}]: the key is not a qualified name"
        if not is_label_value(value):
            yield f"labels[{key}]: {value!r} is not a label value"


def _taint_faults(template: TemplateSpec) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for where, taints in (("taints", template.taints), ("startupTaints", template.startup_taints)):
        for taint in taints or ():
            yield from (f"{where}[{taint.key}]: {fault}" for fault in _one_taint_faults(taint))
            if (taint.key, taint.effect) in seen:
                yield f"{where}[{taint.key}]: the taint with effect {taint.effect} stands here twice"
            seen.add((taint.key, taint.effect))


def _one_taint_faults(taint: Taint) -> Iterator[str]:
    if not is_qualified_name(taint.key):
        yield "the key is not a qualified name"
    if taint.value and not is_qualified_name(taint.value):
        yield f"{taint.value!r} is not a qualified name"


_NO_VALUE = "the operator needs a value"


def _at(item: Requirement, fault: str) -> str:
    return f"requirements[{item.key}]: {fault}"


def _pool_requirement_faults(template: TemplateSpec) -> Iterator[str]:
    for item in template.requirements:
        yield from (_at(item, fault) for fault in _requirement_faults(item))
        if item.key == NODE_POOL:
            yield _at(item, "the label is restricted")
        if item.key == CAPACITY_TYPE and item.operator == "In":
            yield from (_at(item, fault) for fault in _capacity_type_faults(item))


def _requirement_faults(item: Requirement) -> Iterator[str]:
    key, values = item.key, item.values or ()
    if is_restricted(key):
        yield "the label is restricted"
    if not is_qualified_name(key):
        yield "the key is not a qualified name"
    yield from (f"{value!r} is not a label value" for value in values if not is_label_value(value))
    if item.operator == "In" and not values:
        yield _NO_VALUE
    if item.operator in COMPARISONS and not (len(values) == 1 and is_whole_number(values[0])):
        yield f"{item.operator} needs one whole number that is not negative"
    if isinstance(item, FlexibleRequirement) and item.operator == "In" and len(values) < (item.min_values or 0):
        yield f"minValues {item.min_values} is more than there are values"


def _capacity_type_faults(item: FlexibleRequirement) -> Iterator[str]:
    """NPL-22: an unknown capacity type beside a known one is no fault."""
    known = CAPACITY_TYPES.intersection(item.values or ())
    if not known:
        yield f"none of {', '.join(sorted(CAPACITY_TYPES))} is among the values"
    elif len(known) < (item.min_values or 0):
        yield f"minValues {item.min_values} is more than there are known capacity types"
