"""The API server judges gates of roll-outs and alerts of policies as the parser does, and keeps what is written."""

from typing import Any

import pytest

from dovetail.adapters.kubernetes_json.parsing.policies import parse_policy
from dovetail.adapters.kubernetes_json.parsing.rollouts import parse_rollout
from dovetail.adapters.kubernetes_json.rendering.policies import render_rollout, render_status
from dovetail.model.own.gates import GateResult, GateVerdict
from dovetail.model.own.policies import PolicyStatus
from dovetail.model.own.rollouts import Order, Passage, RolloutState, RolloutStatus
from tests.adapters.kubernetes_json.test_parsing_policies import GATES
from tests.cluster.test_approvals_policy import ROLLOUTS, a_rollout
from worlds.cluster.ground import Ground

pytestmark = pytest.mark.cluster

POLICIES = "/apis/dovetail.sh/v1alpha1/disruptionpolicies"
AT = 1_800_000_000.0

QUERY = {"expr": "up", "max": "1"}
REFUSED: list[dict[str, Any]] = [
    {"name": "slo"},
    {"name": "slo", "alerts": {"firing": "{}"}, "query": QUERY},
    {"name": "nodes", "alerts": {"firing": "{}"}},
    {"name": "slo", "query": {"expr": "up"}},
    {"name": "slo", "query": {**QUERY, "max": "many"}},
    {"name": "slo", "query": {**QUERY, "failures": 0}},
    {"name": "slo", "query": {**QUERY, "expr": "x" * 2049}},
    {"name": "a", "alerts": {"firing": '{a="b"} or vector(0)'}},
]
TAKEN = ["{}", "{ }", '{a="b",}', '{a=~"b|c", d!="e" , f!~"{"}', r'{a="say \"no\", please"}']


def a_policy(name: str, **spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


async def test_what_the_parser_refuses_is_refused_and_what_it_takes_is_kept(ground: Ground) -> None:
    for number, gate in enumerate(REFUSED):
        made = a_rollout(f"bad-{number}", gates=[gate])
        answer = await ground.api.post(ROLLOUTS, made)
        assert answer.status == 422 and parse_rollout(made).fault, (gate, answer.text)
    for number, selector in enumerate(TAKEN):
        policy = a_policy(f"p-{number}", health={"alerts": {"firing": selector}})
        answer = await ground.api.post(POLICIES, policy)
        assert answer.status == 201 and not parse_policy(answer.body).fault, (selector, answer.text)

    answer = await ground.api.post(ROLLOUTS, a_rollout("good", gates=GATES, order="Zone", maxDuration="168h"))
    assert answer.status == 201, answer.text
    read = parse_rollout(answer.body)
    assert (read.fault, [gate.name for gate in read.gates], read.order) == ("", ["alerts", "slo"], Order.ZONE)

    said = GateVerdict(name="slo", result=GateResult.UNKNOWN, asked=AT, since=AT, failed=2, message="no answer")
    story = (Passage(step="canary", began=AT, ended=AT, result="Failed", message="x"), Passage(step="canary", began=AT))
    status = RolloutStatus(step="canary", state=RolloutState.SOAKING, since=AT, begun=AT, asked=(said,), history=story)
    answer = await ground.api.patch(f"{ROLLOUTS}/good/status", {"status": render_rollout(read, status)})
    assert answer.status == 200, answer.text
    kept = parse_rollout(answer.body).status
    assert (kept.asked, kept.history) == ((said,), story)

    alerts = GateVerdict(name="alerts", result=GateResult.FAILING, asked=AT, since=AT, message="alerts fire: Down")
    written = {"status": render_status(PolicyStatus(alerts=alerts))}
    answer = await ground.api.patch(f"{POLICIES}/p-0/status", written)
    assert answer.status == 200, answer.text
    assert parse_policy(answer.body).status.alerts == alerts
