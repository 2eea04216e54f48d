"""pod-predicates: what kind of pod is this (DIS-32, DIS-38 to DIS-42)."""

from typing import Any

from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.disruption.nodes.costs import eviction_cost
from dovetail.model.objects import pod_rules as rules
from dovetail.model.places.kept_places import needs_a_node
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import parse_time
from dovetail.notices.decisions import pod_notice


def predicates(case: dict[str, Any]) -> str | None:
    """One pod at one moment."""
    given, expected = case["input"], dict(case["expected"])
    now, pod = parse_time(given["now"]), parse_pod(given["pod"])
    notice = pod_notice(pod, now)
    ours = {
        "active": rules.is_active(pod),
        "terminal": rules.is_terminal(pod),
        "terminating": rules.is_terminating(pod),
        "stuckTerminating": rules.is_stuck(pod, now),
        "reschedulable": rules.is_reschedulable(pod),
        "evictable": rules.is_evictable(pod, now),
        "drainable": rules.is_drainable(pod, now),
        "waitingEviction": rules.awaits_eviction(pod, now),
        "disruptable": not rules.is_protected(pod, now),
        "doNotDisruptActive": rules.protection(pod, now).active,
        "provisionable": needs_a_node(pod, Snapshot(now=now)),
        "toleratesDisruptedTaint": rules.tolerates_disrupted(pod),
        "ownedByDaemonSet": rules.is_daemon(pod),
        "mirror": rules.is_mirror(pod),
        "events": [] if notice is None else [[notice.type, notice.reason, _without_parser_text(notice.message)]],
    }
    cost = expected.pop("evictionCost")
    expected.pop("ownedByStatefulSet")  # nothing asks for it but what may be rescheduled
    expected["events"] = [[e["type"], e["reason"], _without_parser_text(e["message"])] for e in expected["events"]]
    if abs(eviction_cost(pod) - cost) > 1e-12:
        return f"eviction cost {eviction_cost(pod)} is not {cost}"
    different = {key: (ours[key], expected[key]) for key in expected if ours[key] != expected[key]}
    return f"ours, theirs: {different}" if different else None


def _without_parser_text(message: str) -> str:
    """The text of the duration parser is not compared."""
    return message.split("as a duration:")[0]


KINDS = {"pod-predicates": predicates}
