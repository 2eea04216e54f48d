"""`dovetail plan` and `dovetail snapshot`: the same answers from the cluster and from a file, and nothing written."""

import gzip
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from dovetail.answers.explain.explain_pod import explain_pod
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import look, record
from dovetail.answers.plan.plan import PlanAnswer, plan_now
from dovetail.answers.plan.plan_text import plan_text
from dovetail.cli.main import main
from dovetail.model import names
from tests.adapters.simulator.manifests import a_deployment, a_node_class
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world, looked, settings_of
from worlds.manifests import pod_manifest, pool_manifest


def without_moment(answer: PlanAnswer) -> PlanAnswer:
    return replace(answer, source="", now=0.0, next_due=None)


async def test_a_plan_lists_new_nodes_refused_pods_and_disruptions(tmp_path: Path) -> None:
    world = a_world(
        tmp_path,
        a_ready_pool(disruption=OPEN),
        a_deployment(3, cpu="6"),
        pod_manifest("zonal", nodeSelector={"topology.kubernetes.io/zone": "nowhere"}),
        *a_managed_node(),
    )

    answer = plan_now(await looked(world))

    assert sum(len(node.pods) for node in answer.new_nodes) == 3
    assert [r.examples for r in answer.refused_pods] == [("default/zonal",)]
    assert [c.nodes for c in answer.disruptions] == [("n1",)]
    text = plan_text(answer)
    assert "dovetail explain pod default/zonal" in text
    assert "Empty (emptiness): n1" in text
    assert "NodePool default, nodes that may still go now: Drifted 1 of 1, Empty 1 of 1, Underutilized 1 of 1" in text


async def test_a_plan_writes_nothing_at_all(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), a_deployment(3), *a_managed_node())
    before = world.ledger(), world.objects("Event"), world.objects("NodeClaim")

    plan_now(await looked(world))

    assert (world.ledger(), world.objects("Event"), world.objects("NodeClaim")) == before


async def test_a_recorded_snapshot_gives_the_same_plan_as_the_cluster(tmp_path: Path) -> None:
    world = a_world(
        tmp_path,
        a_ready_pool(disruption=OPEN),
        a_deployment(3, cpu="6"),
        *a_managed_node(),
        a_bound_pod("web-1", "n1"),
    )
    settings, file = settings_of(world), tmp_path / "one.gz"

    await record(settings, file)
    recorded = await look(settings, file)

    assert without_moment(plan_now(recorded)) == without_moment(plan_now(await looked(world)))


async def test_a_recorded_pod_is_refused_for_the_same_reasons(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool(limits={"cpu": "2"}), pod_manifest("web", cpu="3"))
    settings, file = settings_of(world), tmp_path / "one.gz"

    await record(settings, file)
    answer = explain_pod(await look(settings, file), "web")

    live = explain_pod(await looked(world), "web")
    assert (answer.pools, answer.helps) == (live.pools, live.helps)


async def test_a_recording_holds_no_environment_and_no_user_data(tmp_path: Path) -> None:
    pod = pod_manifest("web")
    pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    pod["spec"]["containers"][0]["args"] = ["--token=hunter2"]
    world = a_world(tmp_path, a_ready_pool(), pod, a_node_class(userData="hunter2"))
    file = tmp_path / "one.gz"

    await record(settings_of(world), file)

    text = gzip.decompress(file.read_bytes()).decode()
    assert "hunter2" not in text
    assert "500m" in text


async def test_an_object_that_cannot_be_read_is_named_from_the_recording_too(tmp_path: Path) -> None:
    world = a_world(tmp_path, a_ready_pool())
    broken = pool_manifest("broken")
    broken["metadata"]["uid"] = "u1"
    broken["spec"]["limits"] = {"cpu": "many"}
    world.put_raw(broken)
    file = tmp_path / "one.gz"

    await record(settings_of(world), file)
    answer = plan_now(await look(settings_of(world), file))

    assert [line.partition(":")[0] for line in answer.unreadable] == ["NodePool broken"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"not gzip", "it is no gzip file"),
        (gzip.compress(b"{}", mtime=0), "it is not what `dovetail snapshot` writes"),
        (gzip.compress(b'{"format":"dovetail-snapshot/9"}', mtime=0), "its format is dovetail-snapshot/9"),
    ],
)
async def test_a_file_that_is_no_recording_is_one_line(tmp_path: Path, content: bytes | None, words: str) -> None:
    world, file = a_world(tmp_path), tmp_path / "one.gz"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(CommandFailed, match=words):
        await look(settings_of(world), file)


def test_the_commands_end_with_1_and_one_line_for_a_bad_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = a_world(tmp_path, a_ready_pool())
    where = ["--cluster", CLUSTER, "--world", str(world.file)]

    codes = [main(["explain", kind, "nope", *where]) for kind in ("node", "pod")]

    assert codes == [1, 1]
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_json_holds_the_same_facts_for_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web", cpu="1500m"))
    file = str(tmp_path / "one.gz")
    assert main(["snapshot", file, "--cluster", CLUSTER, "--world", str(world.file)]) == 0
    capsys.readouterr()

    code = main(["plan", "--json", "--snapshot", file])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [node["cheapest"] for node in found["new_nodes"]] == ["c-2x-amd64-linux"]
    assert found["now"] <= time.time()


def test_an_answer_from_a_recording_names_the_cluster_that_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLUSTER_NAME", raising=False)
    world = a_world(tmp_path, a_ready_pool(), pod_manifest("web", cpu="1500m"))
    file, change = str(tmp_path / "one.gz"), tmp_path / "change.yaml"
    assert main(["snapshot", file, "--cluster", CLUSTER, "--world", str(world.file)]) == 0
    capsys.readouterr()
    pool = a_ready_pool()
    del pool["status"]
    change.write_text(json.dumps(pool))

    asked = (["plan"], ["plan", "-f", str(change)], ["forecast"], ["explain", "pod", "default/web"])
    found = {}
    for words in asked:
        main([*words, "-o", "json", "--snapshot", file])
        answer = json.loads(capsys.readouterr().out)
        found[answer["kind"]] = answer["cluster"]
    main(["plan", "-o", "json", "--snapshot", file, "--cluster", "another"])
    of_another = json.loads(capsys.readouterr().out)["cluster"]

    assert found == dict.fromkeys(("Plan", "PlannedChange", "Forecast", "PodExplanation"), CLUSTER)
    assert of_another == CLUSTER, "what is typed beside a file does not rename what it holds"


async def test_a_recorded_buffer_asks_for_the_same_room_and_its_templates_hold_no_secrets(tmp_path: Path) -> None:
    """PLC-211: of a PodTemplate and of a workload."""
    container = {"name": "c", "env": [{"name": "PASSWORD", "value": "hidden"}], "resources": {"requests": {"cpu": "1"}}}
    small = {"template": {"spec": {"containers": [container]}}, "metadata": {"name": "small"}}
    follow = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    world = a_world(
        tmp_path,
        a_ready_pool(),
        a_deployment(0, cpu="2"),
        {"apiVersion": "v1", "kind": "PodTemplate", **small},
        a_buffer("small", podTemplateRef={"name": "small"}, replicas=2),
        a_buffer("like-web", scalableRef=follow, replicas=1),
    )
    settings, file = settings_of(world), tmp_path / "one.gz"
    settings = settings.model_copy(update={"gates": {**settings.gates, "CapacityBuffer": True}})

    await record(settings, file)
    recorded, live = plan_now(await look(settings, file)), plan_now(await look(settings, None))

    assert without_moment(recorded) == without_moment(live)
    assert sorted(pod for node in live.new_nodes for pod in node.pods) == [
        "default/capacity-buffer-like-web-1",
        "default/capacity-buffer-small-1",
        "default/capacity-buffer-small-2",
    ]
    assert b"hidden" not in gzip.decompress(file.read_bytes())


def a_buffer(name: str, **spec: object) -> dict[str, object]:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


async def test_a_claim_that_no_plan_of_ours_made_counts_with_the_room_that_it_asks_for(tmp_path: Path) -> None:
    """STA-3, DIS-15: as it does for the planner, also where one pod is explained."""
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), a_deployment(1, cpu="1"))
    claim = a_managed_node()[0]
    del claim["status"]
    claim["spec"]["resources"] = {"requests": {"cpu": "2", "memory": "4Gi", "pods": "4"}}
    world.apply(claim)
    pod = world.objects("Pod")[0]["metadata"]["name"]

    found = await looked(world)

    assert plan_now(found).new_nodes == ()
    assert explain_pod(found, pod).state == "existing_node"


async def test_a_plan_launches_nothing_for_a_pool_that_was_stopped(tmp_path: Path) -> None:
    """PLQ-33."""
    pool = a_ready_pool(disruption=OPEN)
    pool["metadata"]["annotations"] = {names.LAUNCHES_STOPPED: "of no use"}  # by hand: no moment, so none is tried
    world = a_world(tmp_path, pool, a_deployment(1, cpu="1"))
    pod = world.objects("Pod")[0]["metadata"]["name"]

    found = await looked(world)

    assert plan_now(found).new_nodes == ()
    assert [(r.reason, r.conflict) for r in explain_pod(found, pod).pools] == [
        ("launches_stopped", "launches are stopped: of no use")
    ]


@pytest.mark.parametrize("policy", ["Default", "Cost"])
async def test_a_move_says_what_its_nodes_become_how_many_pods_move_and_what_share_it_saves(
    tmp_path: Path, policy: Literal["Default", "Cost"]
) -> None:
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), *a_managed_node(), a_bound_pod("web-1", "n1"))
    found = await looked(world)
    found = replace(found, settings=found.settings.model_copy(update={"placement_policy": policy}))

    answer = plan_now(found)

    [command] = answer.disruptions
    assert (len(command.becomes), command.replacements, command.pods) == (1, 1, 1)
    assert command.becomes[0].endswith(" of default") and command.price > command.savings > 0
    assert command.method == ("cheaper" if policy == "Cost" else "single")
    text = " ".join(plan_text(answer).split())
    assert f"after 1 replacement ({command.becomes[0]}), moves 1 pod, saves ${command.savings:.4f}/h of $" in text
