"""`dovetail explain node`: the verdict, what holds it and by whom, budgets, the move and its price."""

import time
from pathlib import Path

import pytest

from dovetail.answers.explain.explain_node import NodeAnswer, explain_node_now
from dovetail.answers.explain.explain_node_text import node_text
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.status.fleet_facts import FleetFacts
from dovetail.answers.status.moves import moves
from dovetail.answers.wording import moment_text
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.values.json import Json
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_pdb
from tests.cli.worlds import a_ready_pool, a_world, looked
from worlds.manifests import node_manifest, pod_manifest

OPEN = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}


def a_managed_node(name: str = "n1", pool: str = "default") -> list[Json]:
    """A node that is up, and its claim."""
    labels = {
        names.NODE_POOL: pool,
        names.INSTANCE_TYPE: "c-4x-amd64-linux",
        names.ZONE: "test-zone-a",
        names.CAPACITY_TYPE: "on-demand",
        names.ARCH: "amd64",
        names.OS: "linux",
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
    }
    node = node_manifest(name)
    node["metadata"]["labels"].update(labels)
    node["spec"]["providerID"] = f"embedded://{name}"
    moment = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": moment}
        for kind in (names.LAUNCHED, names.REGISTERED_CONDITION, names.INITIALIZED_CONDITION, names.READY)
    ]
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"claim-{name}", "labels": labels},
        "spec": {
            "nodeClassRef": {"group": "dovetail.sh", "kind": "EmbeddedNodeClass", "name": "default"},
            "requirements": [{"key": names.OS, "operator": "In", "values": ["linux"]}],
        },
        "status": {"providerID": f"embedded://{name}", "nodeName": name, "conditions": conditions},
    }
    return [claim, node]


def a_bound_pod(name: str, node: str, app: str = "web") -> Json:
    return {**pod_manifest(name, {"app": app}, nodeName=node), "status": {"phase": "Running"}}


async def explained(world: SimulatedWorld, name: str = "n1") -> NodeAnswer:
    return explain_node_now(await looked(world), name)


def test_every_reason_to_stay_has_its_words() -> None:
    assert [why for why in WhyNot if not why.lifted_by] == []


async def test_an_empty_node_would_go_now(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node())

    answer = await explained(world)

    assert answer.says == "it would go now, for: emptiness"
    assert (answer.claim, answer.pool, answer.state) == ("claim-n1", "default", "ready")


async def test_a_node_is_found_by_its_claims_name(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node())

    answer = await explained(world, "claim-n1")

    assert answer.node == "n1"


async def test_the_pods_of_a_node_are_listed_the_largest_first(tmp_path: Path) -> None:
    pods = [a_bound_pod("small", "n1"), a_bound_pod("large", "n1")]
    pods[1]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2", "memory": "1Gi"}}
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), *pods)

    large, small = (await explained(world)).pods_there

    assert (large.pod, large.cpu, large.memory, large.moves) == ("default/large", 2.0, 2.0**30, True)
    assert small.pod == "default/small"


async def test_the_budget_that_binds_is_named(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption={**OPEN, "budgets": [{"nodes": "0"}]}), *a_managed_node())

    answer = await explained(world)

    assert answer.goes_for == ()
    assert {(b.reason, b.left, b.binding) for b in answer.budgets} >= {("Empty", 0, "nodes: 0")}
    assert "0 now (0 of 1 node allowed, 0 in use; binding: nodes: 0)" in " ".join(node_text(answer).split())


@pytest.mark.parametrize("budget", [{"nodes": "0"}, {"nodes": "0", "reasons": ["Empty"]}])
async def test_a_node_that_only_a_budget_holds_says_so_in_its_first_line(tmp_path: Path, budget: Json) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption={**OPEN, "budgets": [budget]}), *a_managed_node())

    answer = await explained(world)

    only = " for Empty" if "reasons" in budget else ""
    limit = f"the budget of NodePool default (nodes: 0{only}) lets no node go for Empty"
    assert answer.says == f"it stays: it would go for Empty, but {limit}, until spec.disruption.budgets says otherwise"


async def test_a_closed_window_says_until_when(tmp_path: Path) -> None:
    closed = {"nodes": "0", "schedule": "@daily", "duration": "24h"}
    world = a_world(tmp_path, a_ready_pool(disruption={**OPEN, "budgets": [closed]}), *a_managed_node())

    answer = await explained(world)

    [until] = {each.until for each in answer.budgets}
    assert until is not None and answer.now < until
    assert answer.says.endswith(f"lets no node go for Empty until {moment_text(until)}, when its window closes")


async def test_a_budget_that_others_use_says_when_the_next_may_go(tmp_path: Path) -> None:
    one = a_ready_pool(disruption={**OPEN, "budgets": [{"nodes": "1"}]})
    claim, node = a_managed_node("n2")
    node["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "", "message": ""}]
    world = a_world(tmp_path, one, *a_managed_node(), claim, node)

    answer = await explained(world)

    assert "lets 1 node go at once for Empty, and 1 are leaving or not ready" in answer.says


async def test_a_drifted_node_whose_replacement_finds_no_place_says_so_in_its_first_line(tmp_path: Path) -> None:
    pool = a_ready_pool(disruption=OPEN)
    claim, node = a_managed_node()
    drifted = {"type": names.DRIFTED, "status": "True", "reason": "X", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    claim["status"]["conditions"].append(drifted)
    pod = a_bound_pod("web-1", "n1")
    pod["spec"]["nodeSelector"] = {names.ZONE: "test-zone-a", names.INSTANCE_TYPE: "none-such"}
    world = a_world(tmp_path, pool, claim, node, pod)

    answer = await explained(world)

    assert answer.says.startswith("it stays: it would go for Drifted, but ")
    assert "no method has a reason" not in answer.says


async def test_no_budget_for_a_reason_is_no_limit(tmp_path: Path) -> None:
    only = {"nodes": "1", "reasons": ["Empty"]}
    world = a_world(tmp_path, a_ready_pool(disruption={**OPEN, "budgets": [only]}), *a_managed_node())

    text = " ".join(node_text(await explained(world)).split())

    assert "no limit (0 in use)" in text and "2147483647" not in text


async def test_a_pod_disruption_budget_is_named_with_its_pod(tmp_path: Path) -> None:
    world = a_world(
        tmp_path,
        a_ready_pool(disruption=OPEN),
        *a_managed_node(),
        a_pdb(maxUnavailable=0),
        a_bound_pod("web-1", "n1"),
    )

    answer = await explained(world)

    assert [c.why for c in answer.checks] == ["PdbBlocks"]
    assert [(h.pod, h.by) for h in answer.held] == [("default/web-1", "PodDisruptionBudget default/web-pdb")]
    assert "allows 0 disruptions now" in node_text(answer)


async def test_pods_that_a_budget_still_counts_as_disrupted_are_named(tmp_path: Path) -> None:
    """After a kill in mid-eviction Kubernetes counts the evicted pod for two minutes; upstream shows nothing."""
    world = a_world(
        tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), a_pdb(minAvailable=1), a_bound_pod("web-1", "n1")
    )
    status = {"status": {"disruptionsAllowed": 0, "disruptedPods": {"web-0": "2026-01-01T00:00:00Z"}}}
    world.patch("PodDisruptionBudget", "web-pdb", status, "status")

    answer = await explained(world)

    assert [h.detail for h in answer.held] == ["still counts evictions of web-0 (up to 2 minutes)"]


async def test_consolidation_shows_the_price_now_and_then(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), a_bound_pod("web-1", "n1"))

    answer = await explained(world)

    assert answer.move is not None
    assert answer.move.price_now is not None and answer.move.price_then is not None
    assert answer.move.price_now > answer.move.price_then > 0
    assert answer.move.says == "its pods fit on one cheaper node"


async def test_a_node_being_terminated_says_so_and_names_its_workflow(tmp_path: Path) -> None:
    claim, node = a_managed_node()
    claim["metadata"]["finalizers"] = [names.TERMINATION_FINALIZER]
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), claim, node)
    world.delete("NodeClaim", "claim-n1")

    answer = await explained(world)

    assert answer.says.startswith("it is being terminated")
    assert answer.workflow == "demo/claim/claim-n1"


async def test_a_node_that_others_hold_names_their_finalizers(tmp_path: Path) -> None:
    claim, node = a_managed_node()
    claim["metadata"]["finalizers"] = [names.TERMINATION_FINALIZER]
    node["metadata"]["finalizers"] = ["backup.example/agent", "other.example/hold"]
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), claim, node)
    world.delete("NodeClaim", "claim-n1")
    world.delete("Node", "n1")

    answer, look = await explained(world), await looked(world)
    [move] = moves(FleetFacts.of(look.snapshot), ())

    held = "Node n1 is held by the finalizers backup.example/agent, other.example/hold"
    assert answer.says == f"everything of ours is done, and its NodeClaim waits for the Node to go: {held}"
    assert (move.kind, move.step, move.progress) == ("termination", "Node held", held)


async def test_explaining_writes_nothing(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), a_bound_pod("web-1", "n1"))
    before = world.ledger()

    await explained(world)

    assert world.ledger() == before


async def test_a_node_that_rests_is_said_to_rest_and_no_plan_names_it(tmp_path: Path) -> None:
    """The planner and the command line decide on one snapshot."""
    objects = a_managed_node()
    objects[0]["metadata"]["annotations"] = {names.REST: f"{time.time() + 280:.0f}/1/Empty"}
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *objects)

    answer = await explained(world)

    assert answer.goes_for == ()
    assert any(check.why == WhyNot.RESTING for check in (*answer.checks, *answer.methods))
    assert plan_now(await looked(world)).disruptions == ()


async def test_pods_whose_preferences_can_prevent_consolidation_are_named(tmp_path: Path) -> None:
    """PLC-28: Karpenter says it in its log."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    choosy, spread, plain = a_bound_pod("choosy", "n1"), a_bound_pod("spread", "n1"), a_bound_pod("plain", "n1")
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    choosy["spec"]["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    soft = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "topologyKey": names.ZONE}
    hard = {**soft, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": names.HOSTNAME}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    spread["spec"]["topologySpreadConstraints"] = [{**soft, **selector}, {**hard, **selector}]
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), choosy, spread, plain)

    answer = await explained(world)

    assert [(c.pod, c.by) for c in answer.choosy] == [
        ("default/choosy", "preferred anti-affinity on kubernetes.io/hostname"),
        ("default/spread", "preferred spread over topology.kubernetes.io/zone"),
    ]
    assert "Pods whose preferences can prevent consolidation:\n  - default/choosy" in node_text(answer)


async def test_explain_says_from_when_a_node_is_replaced_for_its_age_and_when_it_is_deleted(tmp_path: Path) -> None:
    claim, node = a_managed_node()
    claim["spec"]["expireAfter"] = "720h"
    world = a_world(tmp_path, a_ready_pool(), claim, node)
    spec = {"expiry": {"spread": "24h", "hardAfter": "48h"}}
    policy = {"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy", "metadata": {"name": "p"}}
    world.apply({**policy, "spec": spec})

    answer = explain_node_now(await looked(world), "n1")

    assert answer.expires_at is not None and answer.replaced_from is not None
    assert (answer.replaced_from, answer.deleted_at) == (answer.expires_at - 86_400, answer.expires_at + 172_800)
    assert f": to be replaced first, from {moment_text(answer.replaced_from)} on; deleted in " in node_text(answer)
