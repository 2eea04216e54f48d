"""Recorded results of the requirement algebra, resources, taints and host ports.

Each comparison builds the model objects from the case's raw JSON and compares whole values.
"""

from typing import Any

from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.parsing.requests import pod_requests
from dovetail.adapters.kubernetes_json.parsing.selectors import (
    parse_expression,
    parse_expressions,
    parse_taint,
    parse_taints,
    parse_toleration,
)
from dovetail.model.names import WELL_KNOWN_LABELS
from dovetail.model.pods import Expression
from dovetail.model.scheduling import requirements as algebra
from dovetail.model.scheduling.host_ports import first_conflict
from dovetail.model.scheduling.taints import is_ephemeral, untolerated
from dovetail.model.values.resources import fits, parse_resources, total
from dovetail.placement.facts.pod_needs import pod_requirements

Case = dict[str, Any]


def _written(expression: Expression) -> dict[str, Any]:
    entry: dict[str, Any] = {"key": expression.key, "operator": expression.operator}
    if expression.values:
        entry["values"] = list(expression.values)
    if expression.min_values is not None:
        entry["minValues"] = expression.min_values
    return entry


def _exported(items: algebra.RequirementSet) -> list[dict[str, Any]]:
    return [_written(expression) for expression in algebra.export_set(items)]


def first_difference(ours: dict[str, Any], recorded: dict[str, Any]) -> str | None:
    """The first field of the recorded result that ours differs in."""
    for field, value in recorded.items():
        if ours.get(field) != value:
            return f"{field}: ours {ours.get(field)!r}, recorded {value!r}"
    return None


def _pair(case: Case) -> dict[str, Any]:
    given = case["input"]
    a, b = (algebra.from_expression(parse_expression(given[side])) for side in ("a", "b"))
    both = algebra.intersect(a, b)
    probes = given.get("probes", [])
    return {
        "a_text": algebra.text(a),
        "b_text": algebra.text(b),
        "has": {
            name: {probe: item.has(probe) for probe in probes}
            for name, item in (("a", a), ("b", b), ("intersection", both))
        },
        "has_intersection": algebra.overlaps(a, b),
        "intersection": _exported({both.key: both}),
        "intersection_operator": both.operator,
        "intersection_text": algebra.text(both),
        "reverse_text": algebra.text(algebra.intersect(b, a)),
    }


def _set(case: Case) -> dict[str, Any]:
    r, s = (algebra.from_expressions(parse_expressions(case["input"][side])) for side in ("r", "s"))
    merged = algebra.merge(r, s)
    return {
        "r": _exported(r),
        "s": _exported(s),
        "merged": _exported(merged),
        "intersects": not algebra.conflicts(r, s),
        "compatible_strict": algebra.compatible(r, s),
        "compatible_allow_undefined_well_known": algebra.compatible(r, s, WELL_KNOWN_LABELS),
        "has_min_values": any(item.min_values is not None for item in merged.values()),
    }


def compare_requirements(case: Case) -> str | None:
    """Two requirements, or two sets of them (PLC-33 to PLC-49); how many values one has, nothing here asks for."""
    recorded = {field: value for field, value in case["expected"].items() if field != "intersection_len"}
    return first_difference(_pair(case) if case["kind"] == "pair" else _set(case), recorded)


def compare_pod_requirements(case: Case) -> str | None:
    """A pod's requirements with and without its preferences (PLC-45, PLC-46)."""
    raw = case["input"]["pod"]
    shape = parse_pod({**raw, "spec": {"containers": [], **raw["spec"]}}).shape
    ours = {"strict": _exported(pod_requirements(shape, preferences=False))}
    if "with_preferences" in case["expected"]:
        ours["with_preferences"] = _exported(pod_requirements(shape, preferences=True))
    for field in case["expected"]:
        ours.setdefault(field, _exported(pod_requirements(shape, preferences=True)))
    return first_difference(ours, case["expected"])


def compare_resources(case: Case) -> str | None:
    """Totals of pods, and what fits (PLC-72 to PLC-77); limits of pods are not read (MET-1g)."""
    given, recorded = case["input"], case["expected"]
    if case["kind"] == "fits":
        ours: dict[str, Any] = {"fits": fits(parse_resources(given["want"]), parse_resources(given["have"]))}
        return first_difference(ours, recorded)
    pods = given["pods"] if case["kind"] == "pods_total" else [given["pod"]]
    ours = {"requests": {"pods": 0} | total(pod_requests(pod) for pod in pods)}
    return first_difference(ours, {field: parse_resources(recorded[field]) for field in ours})


def compare_taints(case: Case) -> str | None:
    """Toleration of taints (PLC-80), and the taints that go away by themselves (PLC-64)."""
    given = case["input"]
    if case["kind"] == "known_ephemeral":
        return first_difference({"ephemeral": is_ephemeral(parse_taint(given["taint"]))}, case["expected"])
    tolerations = tuple(parse_toleration(entry) for entry in given.get("tolerations") or ())
    refused = untolerated(parse_taints(given.get("taints")), tolerations)
    return first_difference({"tolerated": refused is None}, case["expected"])


def compare_host_ports(case: Case) -> str | None:
    """Host ports of a pod against those of pods already there (PLC-82)."""
    pod = parse_pod(case["input"]["pod"])
    others = [parse_pod(raw) for raw in case["input"]["existing"]]
    taken = [port for other in others if other.key != pod.key for port in other.shape.host_ports]
    ours = {"conflicts": first_conflict(pod.shape.host_ports, taken) is not None}
    return first_difference(ours, case["expected"])


KINDS = {
    "requirements": compare_requirements,
    "pod_requirements": compare_pod_requirements,
    "resources": compare_resources,
    "taints": compare_taints,
    "host_ports": compare_host_ports,
}
