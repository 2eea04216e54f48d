"""Whether a pod could run on a node: the scheduler's filters.

Written apart from the product's engine, so that placements are not judged by the code under test.
"""

from typing import Any

from dovetail.adapters.simulator.api_server.selecting import all_satisfied, tolerated
from dovetail.model.values.json import Json
from dovetail.model.values.resources import Resources, parse_resources

_UNSCHEDULABLE: dict[str, Any] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_HARD = ("NoSchedule", "NoExecute")


def requests_of(pod: Json) -> dict[str, int]:
    """What a pod asks for: all containers together, or the largest init container if that is more, plus overhead."""
    spec = pod.get("spec") or {}
    wanted: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(wanted, _requests(container))
    sidecars: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        asked = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            _add(wanted, asked)
        else:
            peak = dict(sidecars)
            _add(peak, asked)
            for name, amount in peak.items():
                wanted[name] = max(wanted.get(name, 0), amount)
    _add(wanted, parse_resources(spec.get("overhead")))
    return {**wanted, "pods": 1}


def obstacle(pod: Json, node: Json) -> str:
    """Why the node does not accept the pod, whatever its room and its other pods; empty where it does."""
    tolerations = pod["spec"].get("tolerations") or []
    spec = node.get("spec") or {}
    if spec.get("unschedulable") and not tolerated(_UNSCHEDULABLE, tolerations):
        return "were unschedulable"
    if any(t.get("effect") in _HARD and not tolerated(t, tolerations) for t in spec.get("taints") or []):
        return "had untolerated taint(s)"
    return "" if _chosen(pod, node) else "didn't match Pod's node affinity/selector"


def shortage(requests: Resources, free: Resources) -> str:
    """The resource of which there is too little; empty where there is room for what is requested."""
    short = [name for name, amount in requests.items() if amount > max(0, free.get(name, 0))]
    return f"Insufficient {short[0]}" if short else ""


def _chosen(pod: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        (term.get("matchExpressions") or term.get("matchFields"))
        and all_satisfied(labels, term.get("matchExpressions") or ())
        and all_satisfied(fields, term.get("matchFields") or ())
        for term in required.get("nodeSelectorTerms") or []
    )


def _requests(container: dict[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    return parse_resources({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _add(amounts: dict[str, int], more: Resources) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + amount
