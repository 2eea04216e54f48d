"""nodeclaim-drift, nodeclaim-timers, nodepool-hash-migration: what is written on claims and pools."""

from typing import Any

from acceptance.vectors.disruption_world import RESERVATION_LABEL, WELL_KNOWN, catalogue, moment
from dovetail.adapters.kubernetes_json.parsing.nodes import parse_node, parse_node_claim
from dovetail.adapters.kubernetes_json.parsing.pods import parse_pod
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.disruption.upkeep.conditions import (
    RECHECK_DRIFT,
    DriftFacts,
    judge_consolidatable,
    judge_drifted,
    resulting_condition,
)
from dovetail.disruption.upkeep.hash_migration import hash_stamps
from dovetail.disruption.upkeep.timers import is_stamp_due
from dovetail.model import names
from dovetail.model.nodes import Condition, NodeClaim
from dovetail.model.objects.pairing import Pairing
from dovetail.model.objects.pod_rules import is_daemon
from dovetail.model.pools import NodePool
from dovetail.model.values.durations import parse_seconds


def drift(case: dict[str, Any]) -> str | None:
    """The two conditions of one claim (DIS-166 to DIS-176)."""
    given, expected = case["input"], case["expected"]
    now, claim = moment(given["now"]), parse_node_claim(given["nodeClaim"])
    pool = parse_node_pool(given["nodePool"]) if given["nodePool"] else None
    if pool is None or claim.deleting_since is not None or names.NODE_POOL not in claim.labels:
        ours = _conditions(claim.condition(names.DRIFTED), claim.condition(names.CONSOLIDATABLE))
        return None if ours == _expected(expected) else f"{ours} is not {_expected(expected)}"
    if given["nodeClaim"]["spec"]["nodeClassRef"]["kind"] != "TestNodeClass":
        ours = _conditions(claim.condition(names.DRIFTED), claim.condition(names.CONSOLIDATABLE))
        return None if ours == _expected(expected) else f"{ours} is not {_expected(expected)}"
    return _judge(given, expected, claim, pool, now)


def _judge(given: dict[str, Any], expected: dict[str, Any], claim: NodeClaim, pool: NodePool, now: float) -> str | None:
    facts = DriftFacts(
        catalogue=catalogue(given["instanceTypes"], "listing fails" if given.get("instanceTypesError") else ""),
        provider_reason=given.get("providerDriftReason") or "",
        well_known=WELL_KNOWN,
        reservation_labels=frozenset({RESERVATION_LABEL}),
    )
    drifted, quiet = judge_drifted(claim, pool, facts, now), judge_consolidatable(claim, pool, now)
    ours = _conditions(
        resulting_condition(drifted, claim, names.DRIFTED, now),
        resulting_condition(quiet, claim, names.CONSOLIDATABLE, now),
    )
    if ours != _expected(expected):
        return f"{ours} is not {_expected(expected)}"
    if bool(drifted.error) != (expected["error"] is not None):
        return f"error {drifted.error!r} against {expected['error']!r}"
    if drifted.error:
        return None
    looks = [j.look_again - now for j in (drifted, quiet) if j.look_again is not None]
    again, theirs = min(looks, default=0.0), parse_seconds(expected["requeueAfter"])
    return None if abs(again - theirs) < 1e-6 else f"looked at again in {again}, not {theirs} (recheck {RECHECK_DRIFT})"


def _conditions(drifted: Condition | None, consolidatable: Condition | None) -> dict[str, Any]:
    return {
        kind: None if c is None else (c.status, c.reason, c.message, c.changed)
        for kind, c in (("drifted", drifted), ("consolidatable", consolidatable))
    }


def _expected(expected: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: None if c is None else (c["status"], c["reason"], c["message"], moment(c["lastTransitionTime"]))
        for kind, c in ((kind, expected[kind]) for kind in ("drifted", "consolidatable"))
    }


def timers(case: dict[str, Any]) -> str | None:
    """Expiration, or the stamp of a pod event (DIS-163 to DIS-165, DIS-181)."""
    return _expiration(case) if case["input"]["kind"] == "expiration" else _pod_event(case)


def _expiration(case: dict[str, Any]) -> str | None:
    given, expected = case["input"], case["expected"]
    now, claim = moment(given["now"]), parse_node_claim(given["nodeClaim"])
    managed = claim.node_class.kind == "TestNodeClass"
    deleted, moment_due = managed and claim.is_expired(now), claim.expires_at
    waits = managed and claim.deleting_since is None and not deleted and moment_due is not None
    again = moment_due - now if waits and moment_due is not None else 0.0
    same = deleted == expected["deleted"] and abs(again - parse_seconds(expected["requeueAfter"])) < 1e-6
    return None if same else f"deleted {deleted}, again in {again}: not {expected}"


def _pod_event(case: dict[str, Any]) -> str | None:
    given, expected = case["input"], case["expected"]
    now, pod = moment(given["now"]), parse_pod(given["pod"])
    claims = [parse_node_claim(c) for c in given.get("nodeClaims") or ()]
    managed = [c for c in claims if c.node_class.kind == "TestNodeClass"]
    nodes = [parse_node(n) for n in given.get("nodes") or ()]
    pairing = Pairing(nodes, managed)
    named = [c for node in nodes if node.name == pod.node_name for c in pairing.claims_of(node)]
    found = named[0] if len(named) == 1 else None  # two claims of one instance are stamped by none (DIS-164)
    ours = {c.name: c.last_pod_event for c in claims}
    if found is not None and not is_daemon(pod) and is_stamp_due(found, now):
        ours[found.name] = now
    # A time of the API has whole seconds.
    ours = {name: None if at is None else float(int(at)) for name, at in ours.items()}
    theirs = {name: None if text is None else moment(text) for name, text in expected["lastPodEventTime"].items()}
    return None if ours == theirs else f"{ours} is not {theirs}"


def migration(case: dict[str, Any]) -> str | None:
    """The hash annotations of a pool and its claims (NPL-5)."""
    given, expected = case["input"], case["expected"]
    pool = parse_node_pool(given["nodePool"])
    claims = [parse_node_claim(c) for c in given.get("nodeClaims") or ()]
    supported = pool.template.node_class.kind == "TestNodeClass"
    managed = [c for c in claims if c.node_class.kind == "TestNodeClass"]
    stamps = hash_stamps(pool, managed) if supported else None
    keys = (names.NODE_POOL_HASH, names.NODE_POOL_HASH_VERSION)
    written = dict(stamps.claims) if stamps else {}
    ours = {
        "nodePool": {k: v for k, v in {**pool.annotations, **dict(stamps.pool if stamps else ())}.items() if k in keys},
        "nodeClaims": {
            c.name: {k: v for k, v in {**c.annotations, **dict(written.get(c.name, ()))}.items() if k in keys}
            for c in claims
        },
    }
    theirs = {"nodePool": expected["nodePool"], "nodeClaims": expected["nodeClaims"]}
    return None if ours == theirs else f"{ours} is not {theirs}"


KINDS = {"nodeclaim-drift": drift, "nodeclaim-timers": timers, "nodepool-hash-migration": migration}
