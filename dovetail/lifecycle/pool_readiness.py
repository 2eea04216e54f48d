"""May a NodePool be used for new nodes?

Its condition Ready follows from two others: its template is valid, and its NodeClass is ready. Admission has checked
what a schema can; here are the rules that need code (API-18, API-19). Registration health is a condition of its own,
and does not keep a pool from being used.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from dovetail.lifecycle.conditions import POOL_DEPENDENTS, ConditionSet, complete, false, true
from dovetail.model import names
from dovetail.model.names import CLASS_READY
from dovetail.model.nodes import Condition
from dovetail.model.pods import Expression
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.key_aliases import canonical_key
from dovetail.model.scheduling.taints import Taint

VALIDATION: Final = "ValidationSucceeded"
CLASS_NOT_FOUND: Final = "NodeClassNotFound"
CLASS_TERMINATING: Final = "NodeClassTerminating"

_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_EFFECTS: Final = frozenset({"", "NoSchedule", "PreferNoSchedule", "NoExecute"})
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"})
_BOUNDS: Final = frozenset({"Gt", "Lt", "Gte", "Lte"})
_CAPACITY_TYPES: Final = frozenset({names.CAPACITY_SPOT, names.CAPACITY_ON_DEMAND, names.CAPACITY_RESERVED})
_RESTRICTED_DOMAIN: Final = "karpenter.sh"


def conditions_of_pool(pool: NodePool, now: float) -> ConditionSet:
    """The conditions of a pool, those that are missing standing at Unknown."""
    return complete(
        ConditionSet(
            dependents=POOL_DEPENDENTS,
            created=now,
            generation=pool.generation,
            deleting=pool.deleting_since is not None,
            conditions=pool.conditions,
        )
    )


def class_readiness(found: bool, deleting: bool, ready: Condition) -> tuple[str, str] | None:
    """NPL-15: why the NodeClass is not ready, as (reason, message); None where it is. `ready`: its own condition."""
    if not found:
        return CLASS_NOT_FOUND, "NodeClass not found on cluster"
    if deleting:
        return CLASS_TERMINATING, "NodeClass is being deleted"
    if ready.status == "Unknown":
        return "NodeClassReadinessUnknown", "NodeClass does not say yet whether it is ready"
    return None if ready.status == "True" else (ready.reason, ready.message)


def readiness(pool: NodePool, class_fault: tuple[str, str] | None, now: float) -> tuple[Condition, Condition]:
    """The two conditions that Ready follows from (NPL-15, NPL-20, NPL-21)."""
    faults = pool_faults(pool)
    valid = false(VALIDATION, now, ("NodePoolValidationFailed", "; ".join(faults))) if faults else true(VALIDATION, now)
    return valid, true(CLASS_READY, now) if class_fault is None else false(CLASS_READY, now, class_fault)


def pool_faults(pool: NodePool) -> tuple[str, ...]:
    """API-19: what is wrong with the template, in words."""
    template = pool.template
    taints = (*template.taints, *template.startup_taints)
    return (
        *(fault for key, value in sorted(template.labels.items()) for fault in _label_faults(key, value)),
        *(fault for taint in taints for fault in _taint_faults(taint)),
        *_twice(taints),
        *(fault for expression in template.requirements for fault in _requirement_faults(expression)),
    )


def _label_faults(key: str, value: str) -> Iterable[str]:
    if key == names.NODE_POOL:
        yield f"label {key} is restricted"
        return
    yield from _key_faults("label", key)
    if not _is_label_value(value):
        yield f"label {key}: {value!r} is no label value"


def _taint_faults(taint: Taint) -> Iterable[str]:
    if not _is_qualified(taint.key):
        yield f"taint {taint.key}: not a qualified name"
    if taint.value and not _is_qualified(taint.value):
        yield f"taint {taint.key}: value {taint.value!r} is not a qualified name"
    if taint.effect not in _EFFECTS:
        yield f"taint {taint.key}: unknown effect {taint.effect!r}"


def _twice(taints: tuple[Taint, ...]) -> Iterable[str]:
    counts = Counter((taint.key, taint.effect) for taint in taints)
    return (f"taint {key}:{effect} is given twice" for (key, effect), count in sorted(counts.items()) if count > 1)


def _requirement_faults(expression: Expression) -> Iterable[str]:
    key = canonical_key(expression.key)
    if key == names.NODE_POOL:
        yield f"requirement {key} is restricted"
        return
    yield from _key_faults("requirement", key)
    if expression.operator not in _OPERATORS:
        yield f"requirement {key}: unknown operator {expression.operator!r}"
    yield from (f"requirement {key}: {v!r} is no label value" for v in expression.values if not _is_label_value(v))
    if expression.operator == "In" and not expression.values:
        yield f"requirement {key}: In needs values"
    if expression.operator in _BOUNDS and not (len(expression.values) == 1 and expression.values[0].isdecimal()):
        yield f"requirement {key}: {expression.operator} needs one whole number that is not negative"
    if expression.operator == "In" and len(expression.values) < (expression.min_values or 0):
        yield f"requirement {key}: minValues is more than there are values"
    if key == names.CAPACITY_TYPE and expression.operator == "In":
        yield from _capacity_type_faults(expression)


def _capacity_type_faults(expression: Expression) -> Iterable[str]:
    """NPL-22: unknown values beside known ones are no fault."""
    known = [value for value in expression.values if value in _CAPACITY_TYPES]
    if expression.values and len(known) < max(1, expression.min_values or 1):
        yield f"requirement {names.CAPACITY_TYPE}: too few of spot, on-demand, reserved"


def _key_faults(kind: str, key: str) -> Iterable[str]:
    if not _is_qualified(key):
        yield f"{kind} {key}: not a qualified name"
    elif _is_restricted(key):
        yield f"{kind} {key} is restricted"


def _is_restricted(key: str) -> bool:
    """Whether users may not set the label, because its meaning is Karpenter's or the kubelet's (API-18)."""
    if key in names.WELL_KNOWN_LABELS:
        return False
    domain = key.partition("/")[0] if "/" in key else ""
    return domain == _RESTRICTED_DOMAIN or domain.endswith("." + _RESTRICTED_DOMAIN) or key == names.HOSTNAME


def _is_qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def _is_label_value(text: str) -> bool:
    return text == "" or (len(text) <= 63 and _NAME.fullmatch(text) is not None)
