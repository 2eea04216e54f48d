"""Why a node stays, in `top`, `nodes` and the web page, and that it never says so of a node that would go."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.explain.explain_node import explain_node_now
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.status.stays import stays_of
from dovetail.disruption.choose import METHODS
from dovetail.disruption.methods.cheaper import CHEAPER
from dovetail.disruption.methods.multi_node import MULTI
from dovetail.disruption.methods.single_node import SINGLE
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.worlds import a_ready_pool, a_world, looked

SHUT = {**OPEN, "budgets": [{"nodes": "0"}]}
NO_BUDGET = "NodePool default has no allowance left for "


def _node(
    *conditions: str, marks: dict[str, str] | None = None, protected: bool | None = None, **spec: Any
) -> list[Json]:
    """A node with a claim that has these; `protected`: with a pod, which do-not-disrupt protects or not."""
    claim, node = a_managed_node()
    claim["metadata"]["annotations"] = marks or {}
    claim["spec"] |= spec
    moment = "2026-01-01T00:00:00Z"
    claim["status"]["conditions"] += [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": moment}
        for kind in conditions
    ]
    if protected is None:
        return [claim, node]
    pod = a_bound_pod("web-1", "n1")
    pod["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: "true"} if protected else {}
    return [claim, node, pod]


def _sick() -> list[Json]:
    """Not ready for long, and with do-not-disrupt."""
    claim, node = _node()
    (ready,) = [each for each in node["status"]["conditions"] if each["type"] == names.READY]
    ready |= {"status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    node["metadata"].setdefault("annotations", {})[names.DO_NOT_DISRUPT] = "true"
    return [claim, node]


def _pool(disruption: Json, marks: dict[str, str] | None = None, **spec: Any) -> Json:
    pool = a_ready_pool(disruption=disruption, **spec)
    pool["metadata"].setdefault("annotations", {}).update(marks or {})
    return pool


ASKED = {names.REPLACE: "a noisy neighbour"}
AT_ONCE = {**ASKED, names.REPLACE_NOW: "true"}
EXPIRES: Json = {"expireAfter": "0s"}
FIRST = {names.REPLACE_FIRST: "true"}
GRACE: Json = {"terminationGracePeriod": "1h"}
PAUSED = {names.PAUSED: "disruption", names.PAUSED_BY: "alice", names.PAUSED_REASON: "a release"}

# What there is, which method takes the node, and else in what words it stays.
CASES: dict[str, tuple[list[Json], str, str]] = {
    "empty": ([_pool(OPEN), *_node()], "emptiness", ""),
    "empty, no budget": ([_pool(SHUT), *_node()], "", f"{NO_BUDGET}Empty"),
    "empty, not quiet": (
        [_pool({**OPEN, "consolidateAfter": "87600h"}), *_node()],
        "",
        "consolidateAfter has not elapsed",
    ),
    "empty, never": (
        [_pool({**OPEN, "consolidateAfter": "Never"}), *_node()],
        "",
        'NodePool "default" has consolidation disabled',
    ),
    "dear": ([_pool(OPEN), *_node(protected=False)], "single", ""),
    "dear, no budget": ([_pool(SHUT), *_node(protected=False)], "", f"{NO_BUDGET}Underutilized"),
    "dear, when empty": (
        [_pool({**OPEN, "consolidationPolicy": "WhenEmpty"}), *_node(protected=False)],
        "",
        'NodePool "default" has consolidation policy WhenEmpty, but node is not empty',
    ),
    "protected": ([_pool(OPEN), *_node(protected=True)], "", 'Pod has "karpenter.sh/do-not-disrupt" annotation'),
    "protected for a while": (
        [_pool(OPEN), *_node(protected=True, **GRACE)],
        "",
        'Pod has "karpenter.sh/do-not-disrupt" annotation',
    ),
    "drifted": ([_pool({**OPEN, "consolidateAfter": "Never"}), *_node(names.DRIFTED)], "drift", ""),
    "drifted, protected for a while": ([_pool(OPEN), *_node(names.DRIFTED, protected=True, **GRACE)], "drift", ""),
    "drifted, static": ([_pool(OPEN, replicas=1), *_node(names.DRIFTED)], "staticDrift", ""),
    "static": ([_pool(OPEN, replicas=1), *_node()], "", "NodePool is static"),
    "asked for": ([_pool(OPEN), *_node(marks=ASKED, protected=False)], "requests", ""),
    "asked for, no budget": ([_pool(SHUT), *_node(marks=ASKED, protected=False)], "", f"{NO_BUDGET}Requested"),
    "asked for at once, no budget": ([_pool(SHUT), *_node(marks=AT_ONCE, protected=False)], "requests", ""),
    "expired": ([_pool(OPEN), *_node(marks=FIRST, **EXPIRES)], "expiration", ""),
    "paused": ([_pool(OPEN, PAUSED), *_node()], "", "paused"),
    "sick": ([_pool(OPEN), *_sick()], "repair", ""),
    "sick, no budget": ([_pool(SHUT), *_sick()], "", 'blocked through the "karpenter.sh/do-not-disrupt" annotation'),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_node_stays_where_every_method_refuses_it_and_nowhere_else(tmp_path: Path, case: str) -> None:
    bodies, goes_for, words = CASES[case]
    seen = await looked(a_world(tmp_path, *bodies))
    gates = {**seen.settings.gates, "NodeRepair": True}
    at_once = tuple(replace(policy, toleration=0.0) for policy in seen.snapshot.repair_policies)
    snapshot = replace(seen.snapshot, repair_policies=at_once)
    look = replace(seen, snapshot=snapshot, settings=seen.settings.model_copy(update={"gates": gates}))

    said = stays_of(look).get("claim-n1", "")
    answer = explain_node_now(look, "n1")

    assert words in said and bool(words) is bool(said)
    assert (goes_for in answer.goes_for) if goes_for else answer.goes_for == ()
    assert not (said and answer.goes_for), "what stays does not go"
    assert not said or answer.says.startswith("it stays")
    assert bool(plan_now(look).disruptions) is bool(answer.goes_for)


def test_every_method_that_can_take_a_node_alone_is_among_the_cases() -> None:
    taken = {goes_for for _, goes_for, _ in CASES.values()} - {""}
    assert taken == {method.name for method in METHODS} - {MULTI.name, CHEAPER.name}


def test_both_ways_of_consolidation_ask_the_same_so_that_one_is_asked() -> None:
    assert MULTI.why_not is SINGLE.why_not and MULTI.reason is SINGLE.reason
