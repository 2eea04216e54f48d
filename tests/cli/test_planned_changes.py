"""`dovetail plan -f`: which nodes would drift, what they become, when, which stay; and nothing is written."""

import copy
import io
import json
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.adapters.kubernetes_json.parsing.hashes import template_hash
from dovetail.answers.change.answer import ChangeAnswer
from dovetail.answers.change.text import change_markdown, change_text
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import record
from dovetail.api.karpenter.node_pool import NodePool
from dovetail.api.validation import parse
from dovetail.cli.main import main
from dovetail.cli.output import LEFT_BEHIND
from dovetail.model import names
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.model.values.json import Json
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_node_class, a_pdb
from tests.cli.test_explain_node import a_bound_pod, a_managed_node
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world, planned_change, settings_of

DAY = 86400.0
STILL = {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}


def hashed(pool: Json) -> Json:
    """The pool as a worker has stamped it."""
    template = parse(NodePool, pool).as_object()["spec"]["template"]
    stamps = {names.NODE_POOL_HASH: template_hash(template), names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM}
    pool["metadata"]["annotations"] = {**pool["metadata"].get("annotations", {}), **stamps}
    return pool


def a_fleet(folder: Path, count: int, *more: Json, **disruption: Any) -> tuple[SimulatedWorld, Json]:
    """Nodes of one pool, each full with a pod of its own; the pool as a person's file would have it."""
    pool = hashed(a_ready_pool(disruption={**STILL, **disruption}))
    bodies = [pool]
    for number in range(1, count + 1):
        claim, node = a_managed_node(f"n{number}")
        claim["metadata"]["annotations"] = pool["metadata"]["annotations"]
        pod = a_bound_pod(f"web-{number}", f"n{number}", f"app-{number}")
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
        bodies += [claim, node, pod]
    given = copy.deepcopy(pool)
    del given["status"], given["metadata"]["annotations"]
    return a_world(folder, *bodies, *more), given


def a_file(folder: Path, *bodies: Json) -> Path:
    file = folder / "change.yaml"
    file.write_text(yaml.safe_dump_all(bodies))
    return file


def labelled(pool: Json) -> Json:
    """A change of the template that drifts every node by its hash."""
    changed = copy.deepcopy(pool)
    changed["spec"]["template"]["metadata"] = {"labels": {"tier": "web"}}
    return changed


async def planned(world: SimulatedWorld, *bodies: Json, ahead: float = 30 * DAY) -> ChangeAnswer:
    return await planned_change(settings_of(world), a_file(world.file.parent, *bodies), None, ahead)


async def test_a_changed_label_replaces_every_node_in_waves_by_the_budget(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 5, budgets=[{"nodes": "2"}])

    answer = await planned(world, labelled(pool))

    assert [(node.why, node.already) for node in answer.nodes] == [("NodePoolDrifted", False)] * 5
    assert [wave.nodes for wave in answer.waves] == [2, 2, 1]
    assert [len(node.becomes) for node in answer.nodes] == [1] * 5
    assert not answer.left_behind
    moments = [datetime.fromisoformat(moment) for wave in answer.waves for moment in (wave.begins, wave.ends)]
    assert moments == sorted(moments)
    changes = [(field.sign, field.path, field.after) for each in answer.objects for field in each.fields]
    assert changes == [("+", "spec.template.metadata.labels.tier", "web")]


async def test_prices_before_and_after_are_those_of_the_catalogue(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 2)
    only_spot = copy.deepcopy(pool)
    spot = {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["spot"]}
    only_spot["spec"]["template"]["spec"]["requirements"] = [spot]

    answer = await planned(world, only_spot)

    assert {node.why for node in answer.nodes} == {"RequirementsDrifted"}
    assert {made.size.capacity_type for node in answer.nodes for made in node.becomes} == {"spot"}
    one = answer.nodes[0].size.price
    assert answer.costs.before == pytest.approx(2 * one)
    assert 0 < answer.costs.after < answer.costs.before
    assert answer.costs.saved == pytest.approx(answer.costs.before - answer.costs.after)


async def test_a_window_says_when_the_first_wave_begins(tmp_path: Path) -> None:
    window = {"nodes": "0", "schedule": "0 0 * * *", "duration": "23h59m", "reasons": ["Drifted"]}
    world, pool = a_fleet(tmp_path, 2, budgets=[window, {"nodes": "100%"}])

    answer = await planned(world, labelled(pool))

    assert [wave.begins[11:16] for wave in answer.waves] == ["23:59"]
    assert not answer.left_behind


async def test_what_stays_is_named_with_its_reason(tmp_path: Path) -> None:
    guarded = a_bound_pod("keeper", "n1", "keeper")
    guarded["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: "true"}
    guarded["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m"
    world, pool = a_fleet(tmp_path, 3, guarded, a_pdb("app-2", maxUnavailable=0))

    answer = await planned(world, labelled(pool))

    assert {n.node: n.stays.reason for n in answer.nodes if n.stays} == {"n1": "PodDoNotDisrupt", "n2": "PdbBlocks"}
    assert [n.node for n in answer.nodes if n.wave == 1] == ["n3"]
    assert answer.left_behind
    assert "n2: Pdb prevents pod evictions" in change_text(answer)


async def test_a_timed_protection_delays_a_node_and_does_not_leave_it_behind(tmp_path: Path) -> None:
    guarded = a_bound_pod("keeper", "n1", "keeper")
    guarded["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: "2h"}
    guarded["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m"
    world, pool = a_fleet(tmp_path, 2, guarded)
    running = next(pod for pod in world.objects("Pod") if pod["metadata"]["name"] == "keeper")
    running["status"]["startTime"] = running["metadata"]["creationTimestamp"]
    world.put_raw(running)

    answer = await planned(world, labelled(pool))

    assert [(node.node, node.wave) for node in answer.nodes] == [("n2", 1), ("n1", 2)]
    assert not answer.left_behind


def test_a_closed_budget_leaves_all_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world, pool = a_fleet(tmp_path, 2)
    changed = labelled(pool)
    changed["spec"]["disruption"]["budgets"] = [{"nodes": "0"}]
    file = a_file(tmp_path, changed)

    code = main(["plan", "-f", str(file), "-o", "json", "--cluster", CLUSTER, "--world", str(world.file)])

    answer = json.loads(capsys.readouterr().out)
    assert code == LEFT_BEHIND
    assert (answer["apiVersion"], answer["kind"]) == ("dovetail.sh/v1", "PlannedChange")
    assert {node["stays"]["reason"] for node in answer["nodes"]} == {"Budget"}


async def test_pods_without_a_place_are_named(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 1)
    pod = next(p for p in world.objects("Pod") if p["metadata"]["name"] == "web-1")
    pod["spec"]["nodeSelector"] = {names.ARCH: "amd64"}
    world.put_raw(pod)
    changed = copy.deepcopy(pool)
    arm = {"key": names.ARCH, "operator": "In", "values": ["arm64"]}
    changed["spec"]["template"]["spec"]["requirements"] = [arm]

    answer = await planned(world, changed)

    assert [(lost.pod, lost.node) for lost in answer.homeless] == [("default/web-1", "n1")]
    assert [node.stays.reason for node in answer.nodes if node.stays] == ["PodsHaveNoPlace"]


async def test_a_node_that_stays_has_the_pods_that_would_have_to_move(tmp_path: Path) -> None:
    """As one that leaves: neither those that have ended nor those of DaemonSets."""
    ended, daemon = a_bound_pod("ended", "n1", "job"), a_bound_pod("agent", "n1", "agent")
    ended["status"]["phase"] = "Failed"
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    daemon["metadata"]["ownerReferences"] = [owner]
    world, pool = a_fleet(tmp_path, 1, ended, daemon, budgets=[{"nodes": "0"}])
    changed = copy.deepcopy(pool)
    changed["spec"]["template"]["metadata"] = {"labels": {"team": "a"}}

    (node,) = (await planned(world, changed)).nodes

    assert (node.stays is not None, node.pods) == (True, 1)


async def test_a_changed_class_and_its_pool_are_laid_over_together(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 2)
    for claim in world.objects("NodeClaim"):
        claim["status"]["imageID"] = "image-1"
        claim["metadata"].setdefault("annotations", {})["embedded.dovetail.sh/class-hash"] = "44136fa355b3678a"
        world.put_raw(claim)

    answer = await planned(world, pool, a_node_class(image="image-2"))

    assert [node.why for node in answer.nodes] == ["ImageDrift", "ImageDrift"]
    assert [each.name for each in answer.objects if each.fields] == ["default"]


async def test_a_new_pool_gives_waiting_pods_a_place(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 1)
    waiting = a_bound_pod("waiting", "", "late")
    del waiting["spec"]["nodeName"], waiting["status"]
    waiting["spec"]["nodeSelector"] = {"tier": "gpu"}
    world.apply(waiting)
    world.player().settle(time.time())
    new = copy.deepcopy(pool)
    new["metadata"]["name"] = "gpu"
    new["spec"]["template"]["metadata"] = {"labels": {"tier": "gpu"}}

    answer = await planned(world, new)

    assert answer.placed == ("default/waiting",)
    assert [(each.name, each.is_new) for each in answer.objects] == [("gpu", True)]
    assert answer.nodes == ()


async def test_the_first_wave_is_what_the_planner_decides_once_it_is_applied(tmp_path: Path) -> None:
    """The prediction is made before, the plan after the change stands: by the same functions, on other snapshots."""
    world, pool = a_fleet(tmp_path, 4, budgets=[{"nodes": "3"}])
    answer = await planned(world, labelled(pool))

    applied = hashed(labelled(pool) | {"status": a_ready_pool()["status"]})
    world.apply(applied)
    for claim in world.objects("NodeClaim"):
        drifted = {"type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "message": "", **MOMENT}
        claim["status"]["conditions"].append(drifted)
        world.put_raw(claim)

    from dovetail.answers.plan.plan import plan_now
    from tests.cli.worlds import looked

    plan = plan_now(await looked(world))
    assert {n for c in plan.disruptions for n in c.nodes} == {n.node for n in answer.nodes if n.wave == 1}
    saved = sum(n.size.price - sum(m.size.price for m in n.becomes) for n in answer.nodes if n.wave == 1)
    assert sum(command.savings for command in plan.disruptions) == pytest.approx(saved)


MOMENT = {"lastTransitionTime": "2026-01-01T00:00:00Z"}


async def test_nothing_is_written(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 2)
    before = world.ledger(), [world.objects(kind) for kind in ("NodePool", "NodeClaim", "Event", "EmbeddedNodeClass")]

    await planned(world, labelled(pool), a_node_class(image="image-2"))

    after = world.ledger(), [world.objects(kind) for kind in ("NodePool", "NodeClaim", "Event", "EmbeddedNodeClass")]
    assert after == before


async def test_a_recording_answers_for_pools_and_says_that_it_cannot_for_classes(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 3, budgets=[{"nodes": "1"}])
    settings, recorded = settings_of(world), tmp_path / "one.gz"
    await record(settings, recorded)

    answer = await planned_change(settings, a_file(tmp_path, labelled(pool)), recorded, DAY)

    live = await planned(world, labelled(pool))
    assert answer.nodes == live.nodes
    assert answer.costs == live.costs
    with pytest.raises(CommandFailed, match="EmbeddedNodeClass default: a recorded cluster has no cloud"):
        await planned_change(settings, a_file(tmp_path, a_node_class(image="image-2")), recorded, DAY)


async def test_what_was_applied_before_and_is_left_out_now_goes_away(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 1)
    stands = world.objects("NodePool")[0]
    stands["spec"]["weight"] = 7
    stands["spec"]["limits"] = {"cpu": "100"}
    note = {**pool, "spec": {**pool["spec"], "weight": 7}}
    stands["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(note)
    world.put_raw(stands)

    answer = await planned(world, pool)

    assert [(f.sign, f.path) for each in answer.objects for f in each.fields] == [("-", "spec.weight")]


async def test_markdown_has_the_verdict_the_fields_and_the_nodes(tmp_path: Path) -> None:
    world, pool = a_fleet(tmp_path, 2)

    text = change_markdown(await planned(world, labelled(pool)))

    assert text.startswith("### Dovetail plan: NodePool `default`")
    assert "everything that drifts is replaced" in text
    assert "+ spec.template.metadata.labels.tier: web" in text
    assert "- n1  c-4x-amd64-linux" in text


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"weigth": 3}, "NodePool default: spec.weigth: unknown field"),
        ({"weight": "3"}, "NodePool default: spec.weight: "),
        (
            {"tmplate": {}, "template": None},
            "NodePool default: spec.tmplate: unknown field; spec.template: Required value",
        ),
        (
            {"template": {"spec": {"taints": [{"key": "a", "efect": "NoSchedule"}]}}},
            "NodePool default: spec.template.spec.taints[0].efect: unknown field; ",
        ),
        ({"disruption": {"budgets": [{"nodes": "200%"}]}}, "NodePool default: spec.disruption.budgets[0].nodes: "),
        ({"replicas": 2}, "NodePool default: "),
    ],
)
def test_what_the_api_server_would_refuse_names_object_and_field(
    tmp_path: Path, spec: Json, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world, pool = a_fleet(tmp_path, 1)
    file = a_file(tmp_path, {**pool, "spec": {**pool["spec"], **spec}})

    code = main(["plan", "-f", str(file), "--cluster", CLUSTER, "--world", str(world.file)])

    assert code == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no object in it"),
        ("a: [", "it is no YAML"),
        ("- a", "document 1: it is no object, but list"),
        ("kind: NodePool", "document 1: NodePool: metadata.name: Required value"),
        ("kind: Pod\nmetadata: {name: x}", "document 1: Pod x: only EmbeddedNodeClass, NodePool can be planned"),
        ("---\n---\nkind: NodePool\nmetadata: {name: x}", "NodePool x: apiVersion: None is of another kind"),
    ],
)
async def test_a_file_that_is_no_change_is_one_line(
    tmp_path: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = a_fleet(tmp_path, 1)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    with pytest.raises(CommandFailed) as found:
        await planned_change(settings_of(world), Path("-"), None, DAY)

    assert words in str(found.value)
