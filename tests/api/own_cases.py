"""What the API accepts and refuses of DisruptionPolicies, Freezes and NodeRollouts; case.py says how it is read."""

from typing import Any

from tests.api.case import MATCH, REQUIRED, At, Case, one, vary
from tests.api.manifests import REMOVED, Manifest


def a_policy() -> Manifest:
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "default"},
        "spec": {},
    }


def a_freeze() -> Manifest:
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "Freeze",
        "metadata": {"name": "default"},
        "spec": {"until": "2026-11-30T07:00:00Z"},
    }


def a_rollout() -> Manifest:
    return {
        "apiVersion": "dovetail.sh/v1alpha1",
        "kind": "NodeRollout",
        "metadata": {"name": "default"},
        "spec": {"nodePool": "default", "steps": [{"name": "rest", "to": "100%"}]},
    }


def a_plan(**more: Any) -> Manifest:
    return {"steps": [{"name": "canary", "to": "1", "soak": "30m"}, {"name": "rest", "to": "100%"}], **more}


_UNSEEN = {"step": "canary", "by": "alice", "at": "2026-11-30T07:00:00Z"}
SELECTOR = "spec.nodePoolSelector.matchExpressions"

OWN = [
    Case(cites="DIQ-30", what="that says nothing", manifest=a_policy()),
    *vary("DIQ-30", a_policy, "spec.nodePoolSelector", "", {"for labels": {"matchLabels": {"tier": "prod"}}}),
    *vary("DIQ-30", a_policy, SELECTOR, "", {"for a list": one(key="tier", operator="In", values=["a"])}),
    *vary(
        "DIQ-30",
        a_policy,
        SELECTOR,
        At(f"{SELECTOR}[0]", "In and NotIn need values"),
        {
            "In nothing": one(key="tier", operator="In"),
            "Exists with values": one(key="tier", operator="Exists", values=["a"]),
        },
    ),
    *vary(
        "DIQ-30",
        a_policy,
        "spec.allow",
        "",
        {
            "for a night": one(days=["Mon"], **{"from": "22:00", "to": "05:00"}, reasons=["Drifted"]),
            "for dates": one(dates=["2026-12-24/2027-01-02", "05-01", "12-24/01-02", "2026-05-01"]),
        },
    ),
    *vary("DIQ-30", a_policy, "spec.allow", At("spec.allow[0].from", MATCH), {"at 24:00": one(**{"from": "24:00"})}),
    *vary("DIQ-30", a_policy, "spec.allow", At("spec.allow[0].to", MATCH), {"at 5": one(to="5")}),
    *vary(
        "DIQ-30",
        a_policy,
        "spec.deny",
        At("spec.deny[0].dates[0]", MATCH),
        {"from a year to a day of every year": one(dates=["2026-12-24/01-02"]), "in a month 13": one(dates=["13-01"])},
    ),
    *vary(
        "DIQ-30",
        a_policy,
        "spec.rates",
        "",
        {"of 5 a day": one(nodes="5", per="24h", reasons=["Drifted"]), "of a share": one(nodes="30%", per="10m")},
    ),
    *vary("DIQ-30", a_policy, "spec.rates", At("spec.rates[0].per", REQUIRED), {"without a time": one(nodes="5")}),
    *vary("DIQ-30", a_policy, "spec.rates", At("spec.rates[0].per", MATCH), {"in days": one(nodes="5", per="1d")}),
    *vary("DIQ-30", a_policy, "spec.rates", At("spec.rates[0].nodes", MATCH), {"of -1": one(nodes="-1", per="1h")}),
    *vary("DIQ-42", a_policy, "spec.health", "", {"with nothing": {}, "a number": {"maxNotReady": "3"}}),
    *vary("DIQ-42", a_policy, "spec.health", At("spec.health.maxNotReady", MATCH), {"a word": {"maxNotReady": "few"}}),
    *vary("DIQ-42", a_policy, "spec.health", At("spec.health.stableFor", MATCH), {"in days": {"stableFor": "1d"}}),
    *vary("DIQ-43", a_policy, "spec.breaker", "", {"with nothing": {}, "one failure": {"failures": 1}}),
    *vary(
        "DIQ-43",
        a_policy,
        "spec.breaker",
        At("spec.breaker.failures", "integer"),
        {"failures as a text": {"failures": "5"}},
    ),
    *vary("DIQ-43", a_policy, "spec.breaker", At("spec.breaker.first", MATCH), {"in days": {"first": "1d"}}),
    *vary("DIQ-32", a_policy, "spec.expiry", "", {"over a day": {"spread": "24h"}, "late": {"hardAfter": "72h"}}),
    *vary("DIQ-32", a_policy, "spec.expiry", At("spec.expiry", "spread or hardAfter must be given"), {"empty": {}}),
    *vary("DIQ-32", a_policy, "spec.expiry", At("spec.expiry.spread", MATCH), {"in days": {"spread": "1d"}}),
    *vary(
        "TRM-48",
        a_policy,
        "spec.drain",
        "",
        {
            "with a ladder": {
                "escalation": [
                    {"after": "15m", "do": "Notify"},
                    {"after": "4h", "do": "Ask", "default": "Wait"},
                    {"after": "24h", "do": "Force", "reasons": ["Drifted"], "blockers": ["PdbBlocks", "HookWaits"]},
                ]
            },
            "with hooks": {"hooks": {"timeout": "30m", "onTimeout": "Proceed"}},
        },
    ),
    *vary(
        "TRM-48",
        a_policy,
        "spec.drain",
        At("spec.drain.escalation[0].after", MATCH),
        {"after a day": {"escalation": [{"after": "1d", "do": "Ask"}]}},
    ),
    *vary("DIQ-30", a_policy, "spec.timeZone", MATCH, {"a zone with a dot": "../localtime"}),
    *vary(
        "DIQ-37", a_policy, "spec.rollout", "", {"rolled out": a_plan(), "from two on": a_plan(when={"drifted": "2"})}
    ),
    *vary("DIQ-37", a_policy, "spec.rollout", At("spec.rollout.steps", REQUIRED), {"rolled out by no step": {}}),
    *vary(
        "DIQ-37",
        a_policy,
        "spec.rollout",
        At("spec.rollout", "the last step must be to 100%"),
        {"rolled out in part": {"steps": one(name="a", to="1")}},
    ),
    *vary(
        "DIQ-37",
        a_policy,
        "spec.rollout",
        At("spec.rollout.when.drifted", MATCH),
        {"rolled out from none on": a_plan(when={"drifted": "0"})},
    ),
    Case(cites="DIQ-31", what="with an end", manifest=a_freeze()),
    *vary("DIQ-31", a_freeze, "spec.until", REQUIRED, {"without an end": REMOVED}),
    *vary("DIQ-31", a_freeze, "spec.from", "", {"that begins before it ends": "2026-11-26T17:00:00Z"}),
    *vary(
        "DIQ-31",
        a_freeze,
        "spec.from",
        At("spec", "until must be after from"),
        {"that ends before it begins": "2026-12-26T18:00:00+01:00"},
    ),
    *vary("DIQ-31", a_freeze, "spec.inFlight", "", {"that calls off what has begun": "Undo"}),
    *vary("DIQ-31", a_freeze, "spec.what", "", {"of launches": ["launches", "drains"]}),
    Case(cites="DIQ-37", what="of one step", manifest=a_rollout()),
    *vary("DIQ-37", a_rollout, "spec.nodePool", REQUIRED, {"of no NodePool": REMOVED}),
    *vary("DIQ-37", a_rollout, "spec.intent", "", {"that is aborted": "Abort"}),
    *vary("DIQ-37", a_rollout, "spec.intent", "", {"that is taken back": "RollBack"}),
    *vary("DIQ-37", a_rollout, "spec.newLaunches", "", {"whose launches take the images of before": "Stable"}),
    *vary("DIQ-37", a_rollout, "spec.onFailure", "", {"that goes back by itself": "RollBack"}),
    *vary("DIQ-37", a_rollout, "spec.maxStableAge", "", {"that keeps them for a day": "24h"}),
    *vary("DIQ-37", a_rollout, "spec.nodesGate", "", {"that compares no pods": {"enabled": False}}),
    *vary("DIQ-37", a_rollout, "spec.nodesGate", "", {"that tolerates": {"tolerance": {"pods": 1, "percent": 5}}}),
    *vary(
        "DIQ-37",
        a_rollout,
        "spec.nodesGate",
        At("spec.nodesGate.tolerance.percent", "less than or equal to 100"),
        {"that tolerates more than all": {"tolerance": {"percent": 101}}},
    ),
    *vary("DIQ-37", a_rollout, "spec.progressDeadline", "", {"that has a day for each node": "24h"}),
    *vary(
        "DIQ-37",
        a_rollout,
        "spec.steps",
        "",
        {"of two": [{"name": "canary", "to": "1", "soak": "30m"}, {"name": "rest", "to": "100%"}]},
    ),
    *vary(
        "DIQ-37",
        a_rollout,
        "spec.steps",
        At("spec", "the last step must be to 100%"),
        {"that ends early": one(name="a", to="1")},
    ),
    *vary(
        "DIQ-37",
        a_rollout,
        "spec.steps",
        "",
        {
            "that asks": [
                {"name": "canary", "to": "1", "approve": {"expiresAfter": "2h"}},
                {"name": "rest", "to": "100%"},
            ]
        },
    ),
    *vary(
        "DIQ-37",
        a_rollout,
        "spec.steps",
        At("spec", "the last step cannot have approve"),
        {"that asks when all is done": one(name="rest", to="100%", approve={})},
    ),
    *vary(
        "DIQ-37",
        a_rollout,
        "spec.approval",
        "",
        {"approved": {"step": "canary", "digest": "1-2", "by": "alice", "at": "2026-11-30T07:00:00Z"}},
    ),
    *vary("DIQ-37", a_rollout, "spec.approval", At("spec.approval.digest", REQUIRED), {"approved unseen": _UNSEEN}),
    *vary("DIQ-37", a_rollout, "spec.steps", At("spec.steps[0].to", MATCH), {"to no node": one(name="a", to="0")}),
]
