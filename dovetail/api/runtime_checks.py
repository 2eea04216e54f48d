"""What can be wrong with a NodeOverlay that the API server let through (API-18, API-25)?

Each fault is one sentence with the field in front; no fault means valid. These checks do not repeat the CRD's. They see
what a schema cannot: values of requirements, and the length of key parts. Domains are also compared otherwise:
`foo-karpenter.sh` is stopped by the CRD alone. NodePools are judged in dovetail/lifecycle/pool_readiness.py.
"""

import re
from collections.abc import Iterator

from dovetail.api.karpenter.node_overlay import ORDINARY_RESOURCES, NodeOverlaySpec
from dovetail.api.schema.field_types import LABEL_VALUE, QUALIFIED_NAME
from dovetail.api.schema.label_keys import HOSTNAME, WELL_KNOWN
from dovetail.api.schema.requirements import COMPARISONS, Requirement, is_whole_number

# API-18: only Karpenter and its provider name labels in these domains or below them.
CLOSED_DOMAINS = ("karpenter.sh", "karpenter.k8s.aws")
LONGEST_PREFIX = 253
LONGEST_NAME = 63


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


_NO_VALUE = "the operator needs a value"


def _at(item: Requirement, fault: str) -> str:
    return f"requirements[{item.key}]: {fault}"


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
