"""How much a pod requests, by the containers that it lists.

Sidecars run beside everything that starts after them, other init containers run alone (so their requests are not added
up), and a resize in place shows first in the status (PLC-72, PLC-73).
"""

from collections.abc import Mapping

from dovetail.model.values.json import ReadOnlyJson
from dovetail.model.values.resources import parse_resources

Amounts = dict[str, int]

_POD_LEVEL = ("cpu", "memory")


def _add(left: Amounts, right: Mapping[str, int]) -> Amounts:
    result = dict(left)
    for name, amount in right.items():
        result[name] = result.get(name, 0) + amount
    return result


def _maximum(left: Amounts, right: Mapping[str, int]) -> Amounts:
    result = dict(left)
    for name, amount in right.items():
        if name not in result or amount > result[name]:
            result[name] = amount
    return result


def _resized(amounts: Amounts, status: ReadOnlyJson | None, infeasible: bool) -> Amounts:
    """While a resize is under way, the larger of the requested and the actual amount counts; an infeasible request does
    not count (PLC-73)."""
    if not status or not isinstance(status.get("resources"), dict):
        return amounts
    actual = _maximum(
        parse_resources(status["resources"].get("requests")), parse_resources(status.get("allocatedResources"))
    )
    return actual if infeasible else _maximum(amounts, actual)


def _wanted(container: ReadOnlyJson, field: str, defaulted: bool) -> Amounts:
    resources = container.get("resources") or {}
    amounts = parse_resources(resources.get(field))
    if defaulted:  # PLC-75: what has a limit and no request asks for its limit
        for name, amount in parse_resources(resources.get("limits")).items():
            amounts.setdefault(name, amount)
    return amounts


def _statuses(status: ReadOnlyJson, field: str) -> dict[str, ReadOnlyJson]:
    return {entry["name"]: entry for entry in status.get(field) or ()}


def _aggregate(pod: ReadOnlyJson, field: str, defaulted: bool) -> Amounts:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    infeasible = any(
        c.get("type") == "PodResizePending" and c.get("reason") == "Infeasible" for c in status.get("conditions") or ()
    )
    live = field == "requests"
    running, starting = _statuses(status, "containerStatuses"), _statuses(status, "initContainerStatuses")
    together: Amounts = {}
    for container in spec.get("containers") or ():
        amounts = _wanted(container, field, defaulted)
        together = _add(together, _resized(amounts, running.get(container["name"]), infeasible) if live else amounts)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = _wanted(container, field, defaulted)
        if container.get("restartPolicy") == "Always":
            sidecars = _add(
                sidecars, _resized(amounts, starting.get(container["name"]), infeasible) if live else amounts
            )
            peak = _maximum(peak, sidecars)
        else:
            peak = _maximum(peak, _add(sidecars, amounts))
    return _maximum(_add(together, sidecars), peak)


def _pod_level(total: Amounts, spec: ReadOnlyJson, field: str) -> Amounts:
    for name, amount in parse_resources((spec.get("resources") or {}).get(field)).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    return total


def pod_requests(pod: ReadOnlyJson, limits_as_requests: bool = False) -> Amounts:
    """PLC-72 to PLC-75: everything that must be free on a node for this pod, one `pods` included."""
    spec = pod.get("spec") or {}
    total = _pod_level(_aggregate(pod, "requests", limits_as_requests), spec, "requests")
    return {**_add(total, parse_resources(spec.get("overhead"))), "pods": 1}
