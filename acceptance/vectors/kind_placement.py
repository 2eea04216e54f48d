"""Recorded scheduling passes: one exact answer, ranges, or one of several outcomes.

Exact cases and ranges run under the profile of Karpenter; where upstream itself gives several answers, ours must be one
of them.
"""

from typing import Any

from acceptance.karpenter import KARPENTER_PLACEMENT
from acceptance.placement_worlds import settings_of, snapshot_of
from dovetail.model.places.placements import NewNode, Placement
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import Requirement, RequirementSet, export_set, from_expressions
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.model.values.resources import parse_resources
from dovetail.placement.place_pods import Index, place
from dovetail.placement.prices import cheapest
from dovetail.placement.proposals import claim_requirements
from dovetail.placement.settings import PlacementSettings, Profile

Case = dict[str, Any]
Answer = dict[str, Any]


def written(expression: Expression) -> dict[str, Any]:
    """A requirement in the notation of recorded results."""
    entry: dict[str, Any] = {"key": expression.key, "operator": expression.operator}
    if expression.values:
        entry["values"] = list(expression.values)
    if expression.min_values is not None:
        entry["minValues"] = expression.min_values
    return entry


def _claim(node: NewNode) -> dict[str, Any]:
    return {
        "nodePool": node.pool,
        "pods": sorted(pod.name for pod in node.pods),
        "instanceTypes": [item.name for item in node.types],
        "requirements": [written(expression) for expression in export_set(node.requirements)],
        "requests": dict(node.requests),
    }


def answer_of(placement: Placement, unbound: set[str]) -> Answer:
    """A placement in the notation of recorded results."""
    existing = {name: sorted(pod.name for pod in pods) for name, pods in placement.existing.items()}
    errors = {refused.pod.name: {"class": list(refused.reasons)} for refused in placement.refused}
    claims = sorted((_claim(node) for node in placement.new), key=lambda c: c["pods"])
    placed = {name for claim in claims for name in claim["pods"]} | {n for names in existing.values() for n in names}
    return {
        "newNodeClaims": claims,
        "existing": existing,
        "errors": errors,
        "absent": sorted(unbound - placed - set(errors)),
    }


def _recorded(expected: Answer) -> Answer:
    claims = [
        {
            **{field: claim[field] for field in ("nodePool", "pods", "instanceTypes", "requirements")},
            "requests": dict(parse_resources(claim["requests"])),
        }
        for claim in expected["newNodeClaims"]
    ]
    return {
        "newNodeClaims": sorted(claims, key=lambda c: c["pods"]),
        "existing": {name: sorted(pods) for name, pods in expected["existing"].items()},
        "errors": expected["errors"],
        "absent": sorted(expected["absent"]),
    }


def _solved(given: Case, profile: Profile) -> tuple[Placement, PlacementSettings, set[str]]:
    snapshot, settings = snapshot_of(given), settings_of(given, profile)
    unbound = {pod.name for pod in snapshot.pods.values() if not pod.node_name}
    return place(Index(snapshot, settings)), settings, unbound


def _difference(ours: Answer, recorded: Answer) -> str | None:
    """The first difference, reasons of refusals left out."""
    for field in ("existing", "absent"):
        if ours[field] != recorded[field]:
            return f"{field}: ours {ours[field]}, recorded {recorded[field]}"
    if set(ours["errors"]) != set(recorded["errors"]):
        return f"errors: ours {sorted(ours['errors'])}, recorded {sorted(recorded['errors'])}"
    return _difference_of_claims(ours["newNodeClaims"], recorded["newNodeClaims"])


def _difference_of_claims(mine: list[Answer], theirs: list[Answer]) -> str | None:
    if [c["pods"] for c in mine] != [c["pods"] for c in theirs]:
        return f"claims: ours {[c['pods'] for c in mine]}, recorded {[c['pods'] for c in theirs]}"
    for a, b in zip(mine, theirs, strict=True):
        for field in b:
            if a[field] != b[field]:
                return f"claim {b['pods']}: {field}: ours {a[field]}, recorded {b[field]}"
    return None


def _difference_of_reasons(ours: Answer, recorded: Answer) -> str | None:
    for pod, error in recorded["errors"].items():
        if ours["errors"][pod] != error:
            return f"error of {pod}: ours {ours['errors'][pod]}, recorded {error}"
    return None


def _object(node: NewNode, recorded: dict[str, Any], settings: PlacementSettings) -> str | None:
    """The first difference of the claim object, field by field (PLC-196 to PLC-198)."""
    requirements = claim_requirements(node, settings.well_known)
    found = {
        "labels": dict(node.labels),
        "annotations": dict(node.annotations),
        "requirements": [written(expression) for expression in requirements],
        "nodeClassRef": {
            "group": node.node_class.group,
            "kind": node.node_class.kind,
            "name": node.node_class.name,
        },
        "taints": [(t.key, t.value, t.effect) for t in node.taints],
        "startupTaints": [(t.key, t.value, t.effect) for t in node.startup_taints],
    }
    expected = {
        **{field: recorded[field] for field in ("labels", "annotations", "nodeClassRef", "requirements")},
        **{
            field: [(t["key"], t.get("value") or "", t["effect"]) for t in recorded[field] or ()]
            for field in ("taints", "startupTaints")
        },
    }
    expected["annotations"] = {
        **expected["annotations"],
        "karpenter.sh/nodepool-hash-version": NODE_POOL_HASH_ALGORITHM,
    }
    for field, value in expected.items():
        if found[field] != value:
            return f"object of {sorted(p.name for p in node.pods)}: {field}: ours {found[field]}, recorded {value}"
    return None


def compare_placement(case: Case) -> str | None:
    """One exact answer, error classes and materialised claims included."""
    placement, settings, unbound = _solved(case["input"], KARPENTER_PLACEMENT)
    ours, recorded = answer_of(placement, unbound), _recorded(case["expected"])
    difference = _difference(ours, recorded) or _difference_of_reasons(ours, recorded)
    if difference is not None:
        return difference
    by_pods = {tuple(sorted(pod.name for pod in node.pods)): node for node in placement.new}
    for claim in case["expected"]["newNodeClaims"]:
        if "object" in claim and (found := _object(by_pods[tuple(claim["pods"])], claim["object"], settings)):
            return found
    return None


def total_cost(placement: Placement, settings: PlacementSettings) -> float:
    """The sum over new nodes of the cheapest suitable offering."""
    sets: dict[int, RequirementSet] = {}
    lowest: dict[tuple[frozenset[Requirement], int], float] = {}
    cost = 0.0
    for node in placement.new:
        form = frozenset(node.requirements.values())
        for item in node.types:
            if (form, id(item)) in lowest:
                continue
            for offering in item.offerings:
                if id(offering.requirements) not in sets:
                    sets[id(offering.requirements)] = from_expressions(offering.requirements)
            offered = ((sets[id(o.requirements)], o.price) for o in item.offerings if o.available)
            lowest[form, id(item)] = cheapest(offered, node.requirements, settings.well_known)
        cost += min(lowest[form, id(item)] for item in node.types)
    return cost


def compare_invariants(case: Case) -> str | None:
    """No worse than the recorded ranges; the checker judges constraints on the same answer."""
    from acceptance.checker.check import violations

    placement, settings, _ = _solved(case["input"], KARPENTER_PLACEMENT)
    expected = case["expected"]
    scheduled = sum(len(node.pods) for node in placement.new) + sum(len(p) for p in placement.existing.values())
    cost = total_cost(placement, settings)
    if scheduled < expected["scheduled_count"][0]:
        return f"scheduled {scheduled}, recorded {expected['scheduled_count']}"
    if len(placement.new) > expected["new_claim_count"][1]:
        return f"claims {len(placement.new)}, recorded {expected['new_claim_count']}"
    if cost > expected["total_cost"][1] * 1.001 + 1e-9:
        return f"cost {cost}, recorded {expected['total_cost']}"
    unbound = {p["metadata"]["name"] for p in case["input"]["pods"] if not p["spec"].get("nodeName")}
    found = violations(case["input"], answer_of(placement, unbound))
    return found[0] if found else None


def compare_nondeterministic(case: Case) -> str | None:
    """One of the recorded outcomes. The label drawn at random is no part of the comparison."""
    placement, _, unbound = _solved(case["input"], KARPENTER_PLACEMENT)
    ours = answer_of(placement, unbound)
    differences = [_difference(ours, _recorded(outcome["result"])) for outcome in case["expected"]["outcomes"]]
    if None in differences:
        return None
    return f"none of {len(differences)} outcomes; nearest: {min((d for d in differences if d), key=len, default='')}"


KINDS = {
    "placement": compare_placement,
    "placement_invariants": compare_invariants,
    "placement_nondeterministic": compare_nondeterministic,
}
