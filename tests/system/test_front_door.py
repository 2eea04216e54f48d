"""The front door as an operator uses it: cancel, pause and resume, and one clear line for what is wrong.

The CLI runs as a process. What it brought about is read from the objects and the record, not from what it says, except
where what it says is the point.
"""

import asyncio
import json
import signal
from typing import Any

import pytest

from dovetail.cli.demo.temporal_server import free_ports
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.system.beside import Disrupted, beside
from tests.system.histories import replay_all
from tests.system.test_temporal_away import ask
from worlds.patience import CROWDED
from worlds.stage.stage import Stage, is_tainted, node_pool

pytestmark = pytest.mark.temporal


def given_back(stage: Stage, claim: Json) -> bool:
    """Only the old claim is left, without a mark, its node schedulable."""
    left = stage.claims()
    node = stage.world.get("Node", claim["status"]["nodeName"])
    return (
        [c["metadata"]["uid"] for c in left] == [claim["metadata"]["uid"]]
        and names.OWNER not in (left[0]["metadata"].get("annotations") or {})
        and node is not None
        and not is_tainted(node)
    )


async def record_of(stage: Stage, claim: Json) -> dict[str, Any]:
    handle = await stage.workflow(claim["metadata"]["annotations"][names.OWNER])
    found: dict[str, Any] = await handle.result()
    return found


@beside
async def test_dovetail_cancel_before_the_delete_gives_the_node_back(disrupted: Disrupted) -> None:
    stage, claim = disrupted

    code, out, err = await stage.dovetail(
        "cancel", claim["status"]["nodeName"], "--reason", "not on a Friday", LOGNAME="alice"
    )
    await stage.until(lambda: given_back(stage, claim), 60, "the node is given back and the replacement is gone")

    # On a machine so busy that the answer takes longer than five seconds the request is recorded instead.
    name = claim["metadata"]["name"]
    answers = ("its disruption is called off and undone; the node rests", f"recorded on NodeClaim {name}, acts when")
    assert (code, err) == (0, "") and any(each in out for each in answers)
    record = await record_of(stage, claim)
    assert (record["message"], record["by"]) == ("not on a Friday", "alice")
    assert len(stage.world.live_instances()) == 1
    assert await replay_all(await stage.client(), stage.cluster) > 0


@beside
async def test_a_cancel_by_temporals_own_command_gives_the_node_back(disrupted: Disrupted) -> None:
    stage, claim = disrupted
    owner = claim["metadata"]["annotations"][names.OWNER]

    process = await asyncio.create_subprocess_exec(
        str(stage.temporal.binary),
        *("workflow", "signal", "--workflow-id", owner, "--name", "cancel", "--input", json.dumps("second thoughts")),
        *("--address", stage.temporal.address),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0
    await stage.until(lambda: given_back(stage, claim), 60, "the node is given back and the replacement is gone")

    record = await record_of(stage, claim)
    assert (record["outcome"], record["message"], record["by"]) == ("cancelled", "second thoughts", "")


@beside
async def test_a_cancel_without_a_worker_is_recorded_and_acts_when_one_is_back(disrupted: Disrupted) -> None:
    stage, claim = disrupted
    node = claim["status"]["nodeName"]
    stage.kill(stage.workers[-1])

    code, out, err = await stage.dovetail("cancel", node, "--reason", "while no worker runs", LOGNAME="alice")
    still_tainted = stage.tainted()
    stage.start_worker()
    await stage.until(lambda: given_back(stage, claim), 60, "the node is given back and the replacement is gone")

    assert (code, err) == (
        0,
        "",
    ) and f"recorded on NodeClaim {claim['metadata']['name']}, acts when a worker runs" in out
    assert still_tainted == [node]
    record = await record_of(stage, claim)
    assert (record["message"], record["by"]) == ("while no worker runs", "alice")


@beside
async def test_after_the_delete_a_cancel_is_refused_and_a_signal_is_answered_by_an_event(settled: Stage) -> None:
    stage = settled
    stage.world.set(shutdown=90.0)  # so that the disruption is still under way when the command has started
    stage.world.scale("web", 0)
    claim = await stage.until(lambda: deleting(stage), 90, "the empty node's claim is deleted")
    owner = claim["metadata"]["annotations"][names.OWNER]
    node = claim["status"]["nodeName"]

    await (await stage.workflow(owner)).signal("cancel", "too late")
    code, out, err = await stage.dovetail("cancel", node, "--reason", "too late")
    await stage.until(lambda: event(stage, "DisruptionCancelTooLate"), 20, "an Event answers the signal")

    assert (code, out) == (1, "")
    assert f"{node}: too late: its NodeClaim {claim['metadata']['name']} was deleted at " in err and "\n" not in err
    assert [c["metadata"]["name"] for c in stage.claims() if c["metadata"].get("deletionTimestamp")] == [
        claim["metadata"]["name"]
    ]
    assert stage.tainted() == [node]


def deleting(stage: Stage) -> Json | None:
    return next((c for c in stage.claims() if c["metadata"].get("deletionTimestamp")), None)


def event(stage: Stage, reason: str) -> Json | None:
    return next((e for e in stage.world.objects("Event") if e["reason"] == reason), None)


@beside
async def test_a_cancel_of_a_node_that_nothing_takes_lets_it_rest(settled: Stage) -> None:
    stage = settled
    node = stage.managed_nodes()[0]["metadata"]["name"]

    unmarked = await stage.dovetail("cancel", node, "--reason", "x")
    unknown = await stage.dovetail("cancel", "no-such-node", "--reason", "x")

    assert (unmarked[0], unmarked[2]) == (0, "")
    assert unmarked[1].startswith(f"{node}: nothing takes it now; the node rests until ")
    assert unknown == (1, "", "dovetail: no-such-node: there is no such Node or NodeClaim")


def target(stage: Stage) -> str:
    """The line that says which cluster an order was for."""
    namespace = stage.world.get("Namespace", "kube-system")
    assert namespace is not None
    return f"cluster {stage.cluster} (UID {namespace['metadata']['uid']} of kube-system)"


@beside
async def test_nothing_begins_while_paused_and_everything_does_after_the_resume(settled: Stage) -> None:
    stage = settled

    paused = await stage.dovetail("pause", "all", "--reason", "an incident", LOGNAME="alice")
    stage.deploy(2, "more")
    mark = max(e.id for e in stage.world.ledger())
    await asyncio.sleep(6.0)  # the batch window closes after one second: six are room for what must not happen
    begun = [e for e in stage.world.ledger(mark) if e.operation == "cluster:create" and e.kind == "NodeClaim"]
    shown = await stage.dovetail("status")
    resumed = await stage.dovetail("resume")
    await stage.until(lambda: stage.running_pods() == 3, 60, "all pods run after the resume")

    words, says = "disruption and expiry and launches", "until it is resumed, by alice: an incident"
    assert paused == (0, f"all NodePools: {words} paused {says}\n{target(stage)}", "")
    assert resumed == (
        0,
        f"all NodePools: the pause of {words} is over, which was {says}\nall NodePools: resumed\n{target(stage)}",
        "",
    )
    assert begun == []
    assert f"PAUSED: {words} for all NodePools {says}" in shown[1]


@beside
async def test_a_pause_counts_also_while_no_worker_runs(settled: Stage) -> None:
    stage = settled
    stage.kill(stage.workers[-1])

    paused = await stage.dovetail("pause", "launches", "--reason", "x")
    stage.deploy(1, "more")
    mark = max(e.id for e in stage.world.ledger())
    stage.start_worker()
    await stage.until(lambda: event(stage, "Paused"), 60, "the pool has an Event")
    await asyncio.sleep(6.0)  # the batch window closes after one second: six are room for what must not happen

    assert paused[0] == 0
    assert not [e for e in stage.world.ledger(mark) if e.operation == "cluster:create" and e.kind == "NodeClaim"]


# Bad input: one clear line that names it; the worker goes on with the rest, or ends.


async def ended(stage: Stage, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code and standard error of a command that must end by itself."""
    async with asyncio.timeout(CROWDED * 120):
        code, _, err = await stage.dovetail(*arguments, **environment)
    return code, err


@beside
async def test_no_temporal_server_is_one_line_that_names_the_address_and_the_worker_waits(stage: Stage) -> None:
    """A worker that ended would be started again ever more rarely, and answer no warning in between."""
    worker, log = stage.start_worker(TEMPORAL_ADDRESS="127.0.0.1:1"), stage.folder / "worker.log"
    await stage.until(lambda: "waits until it answers" in log.read_text(), 60, "the worker says what it waits for")
    worker.send_signal(signal.SIGTERM)
    await stage.until(lambda: worker.poll() is not None, 60, "the worker ends when it is told to")

    assert worker.poll() == 0
    said = log.read_text()
    assert "no Temporal server at 127.0.0.1:1" in said and said.count("waits until it answers") == 1
    assert "Traceback" not in said


@beside
async def test_a_command_without_a_temporal_server_is_one_line_that_names_the_address(stage: Stage) -> None:
    """Where it can say nothing without one; `status` answers all the same."""
    code, err = await ended(stage, "log", TEMPORAL_ADDRESS="127.0.0.1:1")
    assert code == 1
    assert err.splitlines()[-1].startswith("dovetail: no Temporal server at 127.0.0.1:1")
    assert "Traceback" not in err


@beside
async def test_no_world_file_is_one_line_that_names_the_file(stage: Stage) -> None:
    missing = stage.folder / "missing.db"
    code, err = await ended(stage, "worker", DOVETAIL_WORLD=str(missing))
    assert code == 1
    assert err.splitlines()[-1] == f"dovetail: embedded world: there is no file {missing}"
    assert "Traceback" not in err


@beside
async def test_an_api_server_that_does_not_answer_is_one_line_that_names_it_and_the_worker_waits(stage: Stage) -> None:
    """A wrong address cannot be told from an outage; a worker that ended would be started again ever more rarely."""
    file, log, [port] = stage.folder / "kubeconfig", stage.folder / "worker.log", free_ports(1)
    file.write_text(json.dumps(unreachable()))
    worker = stage.start_worker_of_cluster(file, HEALTH_PROBE_PORT=str(port))
    await stage.until(lambda: "waits until it answers" in log.read_text(), 60, "the worker says what it waits for")
    health, ready = [await ask(port, path) for path in ("/healthz", "/readyz")]
    worker.send_signal(signal.SIGTERM)
    await stage.until(lambda: worker.poll() is not None, 60, "the worker ends when it is told to")

    assert worker.poll() == 0
    said = log.read_text()
    assert "cluster https://127.0.0.1:1: " in said and said.count("waits until it answers") == 1
    assert (health[0], ready[0]) == (200, 503)
    assert "cluster https://127.0.0.1:1: " in ready[1]
    assert "Traceback" not in said


@pytest.mark.parametrize("kubeconfig", ["missing", "empty"])
@beside
async def test_no_cluster_is_one_line_that_names_it(stage: Stage, kubeconfig: str) -> None:
    file = stage.folder / "kubeconfig"
    if kubeconfig == "empty":
        file.write_text("")
    code, err = await ended(stage, "worker", DOVETAIL_WORLD="", KUBECONFIG=str(file))
    line = err.splitlines()[-1]
    assert code == 1
    assert line.startswith("dovetail: ") and str(file) in line
    assert "Traceback" not in err


def unreachable() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FEATURE_GATES", "NodeRepair=perhaps"),
        ("CLUSTER_NAME", ""),
        *(  # a process each, for what tests/worker/test_settings.py judges without one
            pytest.param(*each, marks=pytest.mark.soak)
            for each in (
                ("BATCH_IDLE_DURATION", "soon"),
                ("LOG_LEVEL", "loud"),
                ("DOVETAIL_ROLES", "control,cook"),
                ("METRICS_PORT", "many"),
            )
        ),
    ],
)
@beside
async def test_a_bad_setting_is_one_line_that_names_its_variable(stage: Stage, name: str, value: str) -> None:
    code, err = await ended(stage, "worker", **{name: value})
    assert code == 1
    assert err.startswith(f"dovetail: {name}: ") and "\n" not in err


@beside
async def test_objects_that_cannot_be_used_are_named_and_the_rest_goes_on(stage: Stage) -> None:
    """An unparsable pool, a pool whose NodeClass is unknown, one that nothing can satisfy; and a good one."""
    stage.world.put_raw(unreadable_pool())
    stage.world.apply(node_pool(["c-2x-amd64-linux"], name="classless", class_name="nowhere"))
    stage.world.apply(node_pool(["no-such-type"], name="impossible"))

    stage.start_worker()
    stage.apply_pool()
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 60, "the pod runs")
    code, shown, _ = await stage.dovetail("status")

    assert code == 0 and stage.running_pods() == 1
    assert [c["metadata"]["labels"][names.NODE_POOL] for c in stage.claims()] == ["pool"]
    assert "left out: NodePool unreadable: " in shown


def unreadable_pool() -> Json:
    body = node_pool(["c-2x-amd64-linux"], name="unreadable")
    body["metadata"] |= {"uid": "unreadable", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    body["spec"]["template"]["spec"]["requirements"] = "none of your business"
    return body


@beside
async def test_a_worker_that_is_asked_to_stop_ends_by_itself_and_with_code_zero(settled: Stage) -> None:
    stage = settled
    worker = stage.workers[-1]

    worker.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(worker.wait, 30)

    assert code == 0
