"""Whether the nodes' kubelets will accept spec.kubelet (AWS-22 to AWS-25, AWS-40).

The API server accepts anything there, so a mistake would show only in a node that never joins. A field that the
family's bootstrap does not pass on is refused, not dropped.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dovetail.adapters.aws.kubelet.formulas import (
    FormulaInputs,
    WrittenFormula,
    formulas_in,
    read_formula,
    resolved,
)
from dovetail.adapters.aws.node_class.conditions import Verdict, false
from dovetail.adapters.aws.node_class.kubelet_fields import misfits
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.image_families import FAMILIES
from dovetail.model.expressions.values import ExpressionError
from dovetail.model.values.durations import DurationError, parse_nanoseconds
from dovetail.model.values.resources import is_quantity

# What AL2, Bottlerocket and Windows can pass on; AL2023 hands the whole object to the kubelet.
_COMMON: Final = frozenset(
    {
        "clusterDNS",
        "maxPods",
        "podsPerCore",
        "systemReserved",
        "kubeReserved",
        "evictionHard",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "evictionMaxPodGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "cpuCFSQuota",
    }
)
_RESERVABLE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pid"})
_SIGNALS: Final = frozenset(
    {
        "memory.available",
        "nodefs.available",
        "nodefs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
        "pid.available",
    }
)
_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)%\Z")
_AT_LEAST_0: Final = ("maxPods", "podsPerCore", "evictionMaxPodGracePeriod")
_SHARES: Final = ("imageGCHighThresholdPercent", "imageGCLowThresholdPercent")


def kubelet_verdict(node_class: NodeClass, *, expressions: bool) -> Verdict | None:
    """The refusal, or None. `expressions`: the gate that allows formulas in place of numbers."""
    kubelet = node_class.kubelet
    wrong = sorted(misfits(node_class.spec.kubelet or {}).items())
    problems = [f"spec.kubelet.{words}" for _, words in wrong] or list(_problems(kubelet))
    if problems:
        return false("InvalidKubeletConfiguration", "; ".join(problems))
    formulas = list(formulas_in(kubelet))
    if formulas and not expressions:
        fields = ", ".join(field for field, _ in formulas)
        return false(
            "KubeletExpressionsDisabled", f"spec.kubelet: expressions need the feature gate NodeClassCEL: {fields}"
        )
    misread = list(_misread(formulas))
    if misread:
        return false("KubeletExpressionInvalid", "; ".join(misread))
    dropped = sorted(_dropped(node_class.family, kubelet))
    if dropped:
        text = f"spec.kubelet has fields not applied by the {node_class.family} AMI family that would be silently"
        return false("UnsupportedKubeletConfiguration", f"{text} dropped: {', '.join(dropped)}")
    return None


def formula_failure(node_class: NodeClass, inputs_of_types: Iterable[FormulaInputs]) -> Verdict | None:
    """The refusal of a formula that has no result for an instance type of the region (AWS-40), or None."""
    if not any(formulas_in(node_class.kubelet)):
        return None
    for inputs in inputs_of_types:
        try:
            resolved(node_class.kubelet, inputs)
        except ExpressionError as error:
            text = f"spec.kubelet.{error} (instance type {inputs.instance_type})"
            return false("KubeletExpressionEvaluationFailed", text)
    return None


def _misread(formulas: Iterable[WrittenFormula]) -> Iterator[str]:
    for field, text in formulas:
        try:
            read_formula(text)
        except ExpressionError as error:
            yield f"spec.kubelet.{field}: {error}"


def _dropped(family: str, kubelet: Mapping[str, Any]) -> Iterator[str]:
    if family in ("AL2023", "Custom"):
        return
    yield from (field for field in kubelet if field not in _COMMON)
    if len(kubelet.get("clusterDNS") or ()) > 1:
        yield "clusterDNS (more than one)"
    if "podsPerCore" in kubelet and not FAMILIES[family].pods_per_core:
        yield "podsPerCore"


def _problems(kubelet: Mapping[str, Any]) -> Iterator[str]:
    if "registerWithTaints" in kubelet:
        yield "spec.kubelet.registerWithTaints: can't be set, the product sets it from the NodeClaim's taints"
    for field in ("systemReserved", "kubeReserved"):
        yield from _reserved(field, kubelet.get(field) or {})
    for field in ("evictionHard", "evictionSoft", "evictionMinimumReclaim"):
        yield from _thresholds(field, kubelet.get(field) or {})
    yield from _soft(kubelet)
    for field in _AT_LEAST_0:
        value = kubelet.get(field)
        if isinstance(value, int) and value < 0:
            yield f"spec.kubelet.{field}: must not be negative"
    yield from _shares(kubelet)


def _reserved(field: str, values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in sorted(values.items()):
        if key not in _RESERVABLE:
            yield f"spec.kubelet.{field}: {key} is not one of {', '.join(sorted(_RESERVABLE))}"
        elif str(value).startswith("-"):
            yield f"spec.kubelet.{field}.{key}: must not be negative"


def _thresholds(field: str, values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in sorted(values.items()):
        if key not in _SIGNALS:
            yield f"spec.kubelet.{field}: {key} is not an eviction signal"
            continue
        share = _PERCENT.match(str(value))
        if share is not None and float(share[1]) > 100:
            yield f"spec.kubelet.{field}.{key}: a share above 100%"
        elif share is None and (not is_quantity(value) or str(value).startswith("-")):
            yield f"spec.kubelet.{field}.{key}: neither a share nor a quantity: {value}"


def _soft(kubelet: Mapping[str, Any]) -> Iterator[str]:
    soft, periods = kubelet.get("evictionSoft") or {}, kubelet.get("evictionSoftGracePeriod") or {}
    for key in sorted(set(soft) ^ set(periods)):
        yield f"spec.kubelet.evictionSoft: {key} and its grace period must be given together"
    for key, text in sorted(periods.items()):
        try:
            negative = parse_nanoseconds(str(text)) < 0
        except DurationError as error:
            yield f"spec.kubelet.evictionSoftGracePeriod.{key}: {error}"
            continue
        if negative:
            yield f"spec.kubelet.evictionSoftGracePeriod.{key}: must not be negative"


def _shares(kubelet: Mapping[str, Any]) -> Iterator[str]:
    for field in _SHARES:
        value = kubelet.get(field)
        if value is not None and not 0 <= value <= 100:
            yield f"spec.kubelet.{field}: not a share between 0 and 100"
    high, low = (kubelet.get(field) for field in _SHARES)
    if isinstance(high, int) and isinstance(low, int) and high <= low:
        yield "spec.kubelet.imageGCHighThresholdPercent: must be above imageGCLowThresholdPercent"
