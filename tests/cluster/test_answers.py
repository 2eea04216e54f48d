"""What a person sees who has a kubeconfig and nothing else, on a real API server.

No AWS credentials, no address of Temporal, no name of the cluster: the command line asks a worker through the API
server's proxy for Services. The person's rights are those of deploy/kubernetes/operators.yaml.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.inspection import KubeInspection, Need
from dovetail.answers.serving.askers import Askers, Visitor
from dovetail.answers.serving.replies import ASKER
from dovetail.cli.demo.temporal_server import free_ports, stop_process
from dovetail.model import names
from dovetail.worker.http_server import Endpoint
from testbed.plane import ApiResponse
from testbed.service import NAMESPACE, NODE, SPACE, kubelet_asks, make_service, network, remove_pod
from testbed.up import give_rights
from tests.cli.browser import a_page
from tests.cli.paged import forwarded
from tests.cli.schemas import faults_of
from tests.cluster.system.scenes import settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import node_pool

pytestmark = pytest.mark.cluster

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
SECONDS = 180.0  # a replacement starts and a node drains within it
READER = "alice"
OPERATOR = "bob"


class Person:
    """Somebody at a terminal."""

    def __init__(self, ground: Ground, user: str, home: Path) -> None:
        kubeconfig = ground.environment_of(user)["KUBECONFIG"]
        (home / ".kube").mkdir(parents=True, exist_ok=True)
        (home / ".kube" / "config").write_text(Path(kubeconfig).read_text())
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
        self.environment = {**kept, "HOME": str(home), "LOGNAME": user}

    async def types(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """A command; its exit code, its output and its errors."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dovetail.cli.main", *words),
            env={**self.environment, **variables},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        return process.returncode or 0, out.decode(), err.decode()


async def test_the_api_server_says_where_a_person_is_and_where_it_comes_from_itself(ground: Ground) -> None:
    """OPS-7: what a worker tells strangers and askers apart by, and that a person cannot say it for themselves."""
    asked: list[str] = []

    async def noted(target: str) -> tuple[int, str, str]:
        asked.append(ASKER.get())
        return 200, "text/plain", "noted"

    # An API server whose address is one of loopback makes no such object.
    slices, of = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {"apiVersion": "discovery.k8s.io/v1"}
    one = {"metadata": {"name": "kubernetes"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.128.0.1"]}]}
    assert (await ground.api.post(slices, {**of, "kind": "EndpointSlice", **one})).status == 201
    client = Client(ClusterAddress(kubeconfig=ground.everything.plane.kubeconfig))
    await client.open()
    addresses = await KubeInspection(client, gated=(), need=Need(), node_classes=()).servers()
    askers = Askers((), KubeInspection(client, gated=(), need=Need(), node_classes=()).servers)
    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={"/": noted}, askers=askers)
    await endpoint.start()
    assert endpoint.server is not None
    await make_service(ground.api)
    async with network(ground.everything.plane.folder, endpoint.server.sockets[0].getsockname()[1]):
        for name, code in (("http-api", 200), ("http-metrics", 200), ("nobody", 503)):
            path = f"{SPACE}/services/dovetail:{name}/proxy/page"
            assert (await ground.api.get(path, **{"X-Forwarded-For": "203.0.113.7"})).status == code
    await endpoint.stop()
    await remove_pod(ground.api)

    assert asked == ["127.0.0.1", "127.0.0.1"], "the last address is the one that the API server saw"
    visitors = [Visitor(address=each, headers={"host": "any.name"}) for each in (*addresses, "10.128.200.9")]
    refusals = [await askers.refusal(each) for each in visitors]
    await client.close()
    await ground.api.delete(f"{slices}/kubernetes")
    assert addresses == ["10.128.0.1"] and not any(refusals[:-1]) and refusals[-1] is not None


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    """The worker's: for questions; for metrics and probes."""
    asked, probed = free_ports(2)
    return asked, probed


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def answering(servers: Ground, ports: tuple[int, int]) -> AsyncIterator[Ground]:
    """A worker that answers questions, behind a Service; roles for people. One for the whole file, whose tests mostly
    ask: to start all this takes longer than they do."""
    port, metrics = ports
    servers.kill_workers()
    own = {"DOVETAIL_API_PORT": str(port), "METRICS_PORT": str(metrics), "HEALTH_PROBE_PORT": str(metrics)}
    environment = {**servers.everything.environment, **own}
    environment["DOVETAIL_FLIGHTS"] = str(servers.everything.folder / "flights")
    servers.workers.append(replace(servers.everything, environment=environment).start_worker())
    await settle(servers, 1)
    await make_service(servers.api)
    roles = {role["metadata"]["name"]: role for role in yaml.safe_load_all((DEPLOY / "operators.yaml").read_text())}
    await give_rights(servers.api, READER, [roles["dovetail-viewer"]])
    await give_rights(servers.api, OPERATOR, [roles["dovetail-viewer"], roles["dovetail-operator"]])
    async with network(servers.everything.plane.folder, port):
        yield servers
    await remove_pod(servers.api)  # what comes next finds no pod and no node but its own
    await asyncio.to_thread(stop_process, servers.workers[-1], signal.SIGKILL)
    servers.ensure_workers()
    await servers.clear()
    await servers.assert_events_are_named()


@pytest_asyncio.fixture(loop_scope="session")
async def served(answering: Ground) -> Ground:
    """With one node and its pod, beside the pod that stands for the worker."""

    async def stands() -> bool:
        return len(await answering.claims()) == 1 and await answering.settled(2)

    await answering.until(stands, 120, "one node stands with its pod")
    return answering


async def test_the_page_opens_in_a_browser_through_the_api_server_s_proxy(served: Ground, tmp_path: Path) -> None:
    alice = Person(served, READER, tmp_path)

    def opened() -> str:
        with forwarded(alice.environment) as address, a_page() as browser:
            browser.goes_to(address)
            return str(browser.until("document.querySelector('#pools a')?.textContent"))

    assert await asyncio.to_thread(opened) == "web"


async def test_a_person_with_a_kubeconfig_alone_sees_everything_and_reads_nothing_else(
    served: Ground, tmp_path: Path
) -> None:
    [claim] = await served.claims()
    node = claim["status"]["nodeName"]
    since = served.audit.end()
    alice = Person(served, READER, tmp_path)
    bare = Person(served, "nobody-knows", tmp_path / "nobody")

    async def planning() -> bool:
        return "Scheduler: planning" in (await alice.types("status"))[1]

    await served.until(planning, 60, "a worker answers")
    status, nodes, why, history, version, document, refused = await asyncio.gather(
        alice.types("status", COLUMNS="100"),
        alice.types("nodes", "--context", "testbed"),
        alice.types("explain", "node", node, COLUMNS="80"),
        alice.types("history", node),
        alice.types("version"),
        alice.types("status", "-o", "json"),
        bare.types("status"),
    )

    found = json.loads(document[1])
    assert [each[0] for each in (status, nodes, why, history, version, document)] == [0] * 6, (status, why, history)
    assert "2 nodes (1 not ours)" in status[1] and max(map(len, status[1].splitlines())) <= 100
    assert node in nodes[1] and f"Node {node}" in why[1] and "launch an instance" in history[1]
    assert max(map(len, why[1].splitlines()[1:])) <= 80, "below the heading, which has the node's whole name"
    assert "kubernetes  v1." in version[1] and "worker      0.1.0" in version[1]
    assert (found["apiVersion"], found["kind"], found["totals"]["claims"]) == ("dovetail.sh/v1", "ClusterStatus", 1)
    assert found["totals"]["price"] > 0 and found["totals"]["unpriced"] == 0 and found["workers"] >= 1
    assert refused[0] == 1 and "services/proxy" in refused[2] and "Traceback" not in refused[2]
    done = {(e.verb, e.resource, e.subresource) for e in served.audit.entries(since) if e.user == READER}
    assert done == {("get", "services", "proxy")}


async def test_a_worker_that_is_not_ready_is_asked_all_the_same(
    served: Ground, ports: tuple[int, int], tmp_path: Path
) -> None:
    """While Temporal is away none of them is, and that is when people ask."""
    alice = Person(served, READER, tmp_path)
    url = f"http://127.0.0.1:{ports[1]}"

    async def ready() -> bool:
        return await kubelet_asks(served.api, url)

    async def unready() -> bool:
        return not await ready()

    def known(found: ApiResponse) -> bool:
        [endpoint] = [one for each in found.body["items"] for one in each["endpoints"]]
        return not endpoint["conditions"]["serving"]

    await served.until(ready, 60, "the worker is ready")

    served.signal_temporal(signal.SIGSTOP)
    try:
        await served.until(unready, 120, "the worker's readiness probe fails")
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        await served.api.wait_for(f"{slices}?labelSelector=kubernetes.io%2Fservice-name%3Ddovetail", known)
        code, said, errors = await alice.types("status")
    finally:
        served.signal_temporal(signal.SIGCONT)

    assert (code, errors) == (0, "") and "Temporal does not answer for" in said

    await served.until(ready, 120, "with Temporal it is ready again")


async def test_the_same_person_reads_the_record_the_plan_the_checks_and_the_live_view(
    served: Ground, tmp_path: Path
) -> None:
    [claim] = await served.claims()
    node = claim["status"]["nodeName"]
    alice = Person(served, READER, tmp_path)

    async def recorded() -> bool:
        return claim["metadata"]["name"] in (await alice.types("log"))[1]

    await served.until(recorded, 60, "Temporal lists the launch")
    since = served.audit.end()
    top, plan, checks, log, saved = await asyncio.gather(
        alice.types("top", "--once", COLUMNS="200"),
        alice.types("plan"),
        alice.types("doctor"),
        alice.types("log", "--since", "1h", "-o", "json"),
        alice.types("savings", "--since", "1h", "-o", "markdown"),
    )

    assert [each[0] for each in (top, plan, log, saved)] == [0] * 4, (top, plan, log, saved)
    assert node in top[1] and "1–2 of 2" in top[1]
    assert "disruption" in plan[1].lower()
    assert "ok    API server" in checks[1] and "ok    Temporal server" in checks[1], checks
    assert "launch" in {entry["kind"] for entry in json.loads(log[1])["entries"]}
    assert saved[1].startswith("| pool |")
    done = {(e.verb, e.resource, e.subresource) for e in served.audit.entries(since) if e.user == READER}
    assert done == {("get", "services", "proxy")}


async def test_the_same_person_looks_ahead_at_a_change_and_back_at_a_decision(served: Ground, tmp_path: Path) -> None:
    """What was added later asks in the same way; a worker that acts has no shadow, and says so."""
    [claim] = await served.claims()
    [pod] = [p for p in await served.objects("Pod") if p["spec"].get("nodeName") not in {None, NODE}]
    alice = Person(served, READER, tmp_path)
    change = tmp_path / "change.yaml"
    change.write_text(yaml.safe_dump(node_pool(colour="green")))
    since = served.audit.end()

    async def kept() -> str:
        code, found, _ = await alice.types("replay")
        return found if code == 0 and "_provisioning" in found else ""

    listed = (await served.until(kept, 60, "a decision is kept")).splitlines()
    decision = next(line.split()[0] for line in listed if "_provisioning" in line)
    ahead, plan, markdown, again, was, why, shadow, words = await asyncio.gather(
        alice.types("forecast", "--for", "2d"),
        alice.types("plan", "-f", str(change), "--diff"),
        alice.types("plan", "-f", str(change), "-o", "markdown"),
        alice.types("replay", decision),
        alice.types("explain", "node", claim["metadata"]["name"], "--at", "1s"),
        alice.types("explain", "pod", pod["metadata"]["name"], "-n", "default"),
        alice.types("shadow", "report"),
        alice.types("__complete", "explain", "node", ""),
    )

    assert [each[0] for each in (ahead, plan, markdown, again, why, words)] == [0] * 6, (ahead, plan, again, why)
    assert "Forecast until" in ahead[1] and "1 of 1 node drifts by it" in plan[1]
    assert markdown[1].startswith("### Dovetail plan: NodePool")
    assert "made again: the same comes out" in again[1]
    # The last decision about disruption may be older than the node, or there is none yet; either is said.
    too_early = ("no decision of that time or before it is kept", f"{claim['metadata']['name']}: there is no such Node")
    assert was[0] == 0 or any(words in was[2] for words in too_early), was
    assert pod["metadata"]["name"] in why[1] and claim["status"]["nodeName"] in words[1]
    assert shadow[0] == 1 and "this worker acts" in shadow[2]
    done = {(e.verb, e.resource, e.subresource) for e in served.audit.entries(since) if e.user == READER}
    assert done == {("get", "services", "proxy")}


async def test_every_document_is_what_its_schema_says(served: Ground, tmp_path: Path) -> None:
    [claim] = await served.claims()
    node = claim["status"]["nodeName"]
    alice = Person(served, READER, tmp_path)
    asked = (
        ("status",),
        ("nodes",),
        ("plan",),
        ("forecast",),
        ("explain", "node", node),
        ("history", node),
        ("log", "--since", "1h"),
        ("savings", "--since", "1h"),
        ("version",),
    )
    answers = await asyncio.gather(*[alice.types(*words, "-o", "json") for words in asked])
    assert [each[0] for each in answers] == [0] * len(asked), answers
    assert [fault for each in answers for fault in faults_of(json.loads(each[1]))] == []


async def test_a_node_is_replaced_at_once_drained_first_and_deleted_last(served: Ground, tmp_path: Path) -> None:
    [claim] = await served.claims()
    bob = Person(served, OPERATOR, tmp_path)
    since = served.audit.end()

    code, out, err = await bob.types("replace", claim["metadata"]["name"], "--reason", "a bad disk", "--now")
    assert (code, err) == (0, ""), (out, err)

    async def replaced() -> bool:
        """The pod that stands for the worker counts as one."""
        claims = await served.claims()
        here = claim["metadata"]["uid"] in {c["metadata"]["uid"] for c in claims}
        return not here and await served.settled(2)

    await served.until(replaced, 180, "the pod runs on another node, and the old one is gone")
    entries = [e for e in served.audit.entries(since) if e.code < 300]
    evicted = [e.time for e in entries if (e.resource, e.subresource) == ("pods", "eviction")]
    created = [e.time for e in entries if (e.verb, e.resource) == ("create", "nodeclaims")]
    deleted = [
        e.time for e in entries if (e.verb, e.resource, e.name) == ("delete", "nodeclaims", claim["metadata"]["name"])
    ]
    assert min(evicted) < min(created), "nothing was waited for"
    assert min(evicted) < min(deleted), "it could be called off until then"


async def test_a_node_is_replaced_by_hand_and_its_pod_has_a_new_one_first(served: Ground, tmp_path: Path) -> None:
    [claim] = await served.claims()
    bob = Person(served, OPERATOR, tmp_path)
    since = served.audit.end()

    code, out, err = await bob.types("replace", claim["status"]["nodeName"], "--reason", "a bad disk", "--wait")

    assert (code, err) == (0, ""), (out, err)
    assert out.index("asked for on NodeClaim") < out.index("the old node drains") < out.index("gone")
    [new] = await served.claims()
    assert new["metadata"]["uid"] != claim["metadata"]["uid"]
    deletes = [e for e in served.audit.entries(since) if (e.verb, e.resource) == ("delete", "nodeclaims")]
    assert [e.name for e in deletes if e.code == 200] == [claim["metadata"]["name"]]
    # A creationTimestamp has whole seconds, the audit log has parts of them.
    assert new["metadata"]["creationTimestamp"][:19] <= deletes[0].time[:19], "the new node first"


async def test_a_person_without_temporal_or_aws_calls_a_disruption_off(served: Ground, tmp_path: Path) -> None:
    """The annotation is all that is written; it is answered by a rest, in which no plan takes the node."""
    [claim] = await served.claims()
    node = claim["status"]["nodeName"]
    bob = Person(served, OPERATOR, tmp_path)
    since = served.audit.end()
    code, out, err = await bob.types("cancel", node, "--reason", "not now", "--wait")

    assert (code, err) == (0, "") and "the node rests until" in out
    found = await served.claim(claim["metadata"]["name"])
    assert found is not None and "deletionTimestamp" not in found["metadata"]
    assert names.REST in found["metadata"]["annotations"]
    done = [(e.verb, e.resource) for e in served.audit.entries(since) if e.user == OPERATOR]
    assert ("patch", "nodeclaims") in done and not {"pods", "secrets"} & {resource for _, resource in done}
    assert "list" not in {verb for verb, _ in done}, "nothing is listed, however large the cluster is"
