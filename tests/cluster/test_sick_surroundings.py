"""What may go on goes on while the servers around a worker are sick: the whole worker, on real servers."""

import asyncio
import os
import re
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import orjson
import pytest

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.discovery import is_absent
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from testbed.faults import Fault, HttpProxy, TcpProxy, paused, skewed
from testbed.plane.api import ApiClient
from tests.cluster.system.scenes import gone, settle
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS, deployment, node_pool
from worlds.loaded.processes import start_process

pytestmark = pytest.mark.cluster

ROLE_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Hurt:
    """A ground whose one worker reaches the API server through a proxy, and answers probes."""

    def __init__(self, ground: Ground, proxy: HttpProxy) -> None:
        self.ground, self.proxy = ground, proxy
        self.port = _free_port()

    def start_worker(self, command: Sequence[str] = (), **further: str) -> None:
        """The only one; `command` in place of the usual one, `further` in its environment."""
        self.ground.kill_workers()
        self.start_another(command, **further)

    def start_another(self, command: Sequence[str] = (), **further: str) -> None:
        """Beside those that run."""
        everything = self.ground.everything
        environment = {
            **os.environ,
            **everything.environment,
            "KUBECONFIG": str(self.proxy.kubeconfig(everything.folder)),
            "HEALTH_PROBE_PORT": str(self.port),
            **further,
        }
        with (everything.folder / "worker.log").open("ab") as log:
            worker = start_process(command or everything.worker_command(), environment, log)
        self.ground.workers.append(worker)

    async def healthz(self) -> tuple[int, str]:
        return await asyncio.to_thread(_get, f"http://127.0.0.1:{self.port}/healthz")

    async def readyz(self) -> tuple[int, str]:
        """What the worker says; 0 before it listens."""
        return await asyncio.to_thread(_get, f"http://127.0.0.1:{self.port}/readyz")

    async def says(self, status: int, words: str) -> None:
        """Until /readyz says so."""

        async def said() -> bool:
            found, text = await self.readyz()
            return found == status and words in text

        await self.ground.until(said, 60, f"/readyz says {status} {words}")


@asynccontextmanager
async def hurt(ground: Ground) -> AsyncIterator[Hurt]:
    proxy = await HttpProxy.to_api_server(Path(ground.everything.environment["KUBECONFIG"]))
    try:
        yield Hurt(ground, proxy)
    finally:
        ground.kill_workers()
        await proxy.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


async def test_drains_plans_and_answers_to_warnings_go_on_while_watches_are_broken(ground: Ground) -> None:
    async with hurt(ground) as sick:
        sick.start_worker(FEATURE_GATES="CapacityBuffer=true")
        first, second = await settle(ground, 2)
        broken = Fault(path="/csinodes|/podtemplates|/persistentvolumes|/services", status=500)
        with sick.proxy.sick(broken):
            await sick.says(200, "CSINode: the watch is broken")
            assert "PodTemplate: the watch is broken" in (await sick.readyz())[1]

            await ground.delete("NodeClaim", first["metadata"]["name"])  # a drain, a termination, a plan, a launch
            await ground.until(lambda: gone(ground, first), 90, "the claim is gone")
            await ground.until(lambda: ground.settled(2), 90, "its pod runs on a new node")
            await ground.warn(second)
            await ground.until(lambda: gone(ground, second), 90, "the claim of the warned instance is gone")

            assert "CSINode: the watch is broken" in (await sick.readyz())[1]  # it was so all the while
        await ground.until(lambda: ground.settled(2), 90, "both pods run")
        assert {path.partition("?")[0] for _, _, path in sick.proxy.done} >= {"/api/v1/podtemplates"}


async def test_claims_wait_for_no_event(ground: Ground) -> None:
    """200 pods that fit nowhere, and an API server that takes 20 s for an Event: minutes, ten at a time."""
    async with hurt(ground) as sick:
        sick.start_worker()
        await ground.apply(node_pool())
        await sick.says(200, "ok")
        slow = Fault(path="/events", method="POST", delay=20.0)
        with sick.proxy.sick(slow):
            hopeless = deployment(200, "900")
            await ground.apply({**hopeless, "metadata": {**hopeless["metadata"], "name": "hopeless"}})
            await ground.until(lambda: _met(sick.proxy, slow), 60, "Events are being published")
            await ground.apply(deployment(1, "3"))
            await ground.until(ground.claims, 20, "the claim of the pod that fits is there")
        await ground.api.delete(f"{DEPLOYMENTS}/hopeless", {"propagationPolicy": "Background"})


@pytest.mark.soak
async def test_a_worker_whose_clock_is_far_off_takes_no_step_and_another_does_the_work(ground: Ground) -> None:
    async with hurt(ground) as sick:
        sick.start_worker(skewed(ground.everything.worker_command(), 300.0))
        await sick.says(503, "no step is taken: the clock of this worker is ")
        # The API server tells its time in whole seconds: the difference is known to one, less well from few answers.
        assert re.search("is (29[789]|300) s ahead of the API server's", (await sick.readyz())[1])
        await ground.apply(node_pool())
        await ground.apply(deployment(1, "3"))
        await asyncio.sleep(10)  # long enough for a plan, as the other tests show
        assert await ground.claims() == []

        ground.workers.append(ground.everything.start_worker())
        await ground.until(lambda: ground.settled(1), 120, "the pod runs")
        await ground.assert_one_instance_per_claim()


@pytest.mark.soak
async def test_a_worker_whose_clock_is_a_little_off_launches_and_drains(ground: Ground) -> None:
    async with hurt(ground) as sick:
        sick.start_worker(skewed(ground.everything.worker_command(), -25.0))
        [claim] = await settle(ground, 1)
        await ground.delete("NodeClaim", claim["metadata"]["name"])
        await ground.until(lambda: gone(ground, claim), 90, "the claim is gone")
        await ground.until(lambda: ground.settled(1), 90, "the pod runs on a new node")


async def test_a_worker_stands_aside_while_a_karpenter_runs(ground: Ground) -> None:
    async with hurt(ground) as sick:
        assert (await ground.api.post(LEASES, _lease())).status == 201
        try:
            sick.start_worker()
            await sick.says(
                503, "no step is taken: Karpenter runs in this cluster (karpenter-0_a in namespace kube-sys"
            )
            await ground.apply(node_pool())
            await ground.apply(deployment(1, "3"))
            await ground.until(lambda: _event(ground, "WorkerStandsAside"), 60, "an Event on the NodePool says so")
            assert await ground.claims() == []
        finally:
            await ground.api.delete(f"{LEASES}/karpenter-leader-election")
        await ground.until(lambda: ground.settled(1), 90, "the pod runs")


async def test_a_lease_of_a_tenant_stops_nothing(ground: Ground) -> None:
    """Whoever may edit a namespace may write Leases in it, also one of Karpenter's name: launches go on beside it."""
    path = "/apis/coordination.k8s.io/v1/namespaces/team/leases"
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    assert (await ground.api.post("/api/v1/namespaces", team)).status == 201
    assert (await ground.api.post(ROLE_BINDINGS.format("team"), _edit("mallory"))).status == 201
    mallory = Path(ground.environment_of("mallory")["KUBECONFIG"])
    async with hurt(ground) as sick, ApiClient(mallory) as tenant:
        try:
            await ground.until(partial(_made, tenant, path), 60, "mallory may write Leases in that namespace")
            assert (await tenant.post(LEASES, _lease())).status == 403
            sick.start_worker()
            await settle(ground, 1)
            assert (await sick.readyz())[0] == 200
            _, said = await ground.dovetail("doctor")
            [line] = [line for line in said.splitlines() if " alone " in line]
            assert line.startswith("WARN") and "in namespace team" in " ".join(said.split())
        finally:
            await ground.api.delete("/api/v1/namespaces/team")


async def test_a_404_of_something_before_the_api_server_does_not_end_a_freeze(ground: Ground) -> None:
    """Pods are placed, and nothing leaves."""
    async with hurt(ground) as sick:
        with sick.proxy.sick(Fault(path="/freezes", status=404)):
            sick.start_worker()
            await settle(ground, 1)
            await sick.says(200, "Freeze: whether Freeze is installed is not known")
            await ground.scale(0)
            await ground.until(partial(_no_plan, ground, "whether Freeze is installed"), 60, "no disruption is planned")
            assert len(await ground.claims()) == 1
        await ground.until(lambda: _empty(ground), 120, "the empty node leaves once Freezes can be read")


async def test_what_the_server_tells_of_itself_says_which_kinds_it_has(ground: Ground) -> None:
    client = Client(ClusterAddress(kubeconfig=Path(ground.everything.environment["KUBECONFIG"])))
    await client.open()
    try:
        for path in ("dovetail.sh/v1alpha1/freezes", "resource.k8s.io/v1/deviceclasses", "apps/v1/deployments"):
            assert not await is_absent(client, f"/apis/{path}")
        for path in ("dovetail.sh/v1alpha1/thaws", "dovetail.sh/v9/freezes", "nobody.example/v1/things"):
            assert await is_absent(client, f"/apis/{path}")
    finally:
        await client.close()


@pytest.mark.soak
async def test_beside_a_karpenter_a_worker_may_look_and_writes_nothing(ground: Ground) -> None:
    """A Karpenter has taken the cluster over again; what Dovetail would do with one more pod is a question."""
    async with hurt(ground) as sick:
        sick.start_worker()
        await settle(ground, 1)
        ground.kill_workers()
        await ground.scale(2)
        assert (await ground.api.post(LEASES, _lease())).status == 201
        instances, since = len(await ground.instances()), ground.audit.end()
        try:
            sick.start_worker(DOVETAIL_BESIDE_KARPENTER="true", METRICS_PORT=str(sick.port))
            await sick.says(200, "ok")

            async def planned() -> bool:
                status, text = await asyncio.to_thread(_get, f"http://127.0.0.1:{sick.port}/api/v1/plan")
                return status == 200 and len(orjson.loads(text)["newNodes"]) == 1

            await ground.until(planned, 60, "the plan has a node for the second pod")
            ground.kill_workers()
        finally:
            await ground.api.delete(f"{LEASES}/karpenter-leader-election")
        calls = ground.worker_calls(since)
        reviews = {"selfsubjectaccessreviews", "selfsubjectreviews"}
        assert calls and not [e for e in calls if e.is_write and e.resource not in reviews]
        assert (len(await ground.claims()), len(await ground.instances())) == (1, instances)


@pytest.mark.soak
async def test_an_api_server_that_refuses_and_breaks_off_half_of_all_requests_is_outlived(ground: Ground) -> None:
    async with hurt(ground) as sick:
        sick.start_worker()
        [claim] = await settle(ground, 1)
        faults = [
            Fault(share=0.2, status=429, retry_after=1),
            Fault(share=0.2, status=503),
            Fault(share=0.2, drop=True),
        ]
        with sick.proxy.sick(*faults):
            await ground.delete("NodeClaim", claim["metadata"]["name"])
            await ground.until(lambda: gone(ground, claim), 120, "the claim is gone")
            await ground.until(lambda: ground.settled(1), 120, "the pod runs on a new node")
        assert {fault for fault, _, _ in sick.proxy.done} == set(faults)
        await ground.assert_one_instance_per_claim()


IMPATIENT = (
    "from dovetail.activities.shared.every_step import step_health as h; h.STUCK_SECONDS = 25.0; "
    "from dovetail.cli.main import run; run()"
)  # a worker whose liveness gives a loop 25 s, longer than a poll of the queue takes, in place of ten minutes


async def test_an_api_server_that_is_away_kills_no_worker_and_one_that_starts_meanwhile_waits(ground: Ground) -> None:
    async with hurt(ground) as sick:
        sick.start_worker([sys.executable, "-c", IMPATIENT, "worker"])
        await settle(ground, 1)
        [first] = [worker for worker in ground.workers if worker.poll() is None]
        second = Hurt(ground, sick.proxy)
        with sick.proxy.sick(Fault(drop=True)):
            await ground.until(lambda: _behind(sick, "orders"), 120, "a loop is behind, and its step fails")
            assert (await sick.healthz())[0] == 200
            second.start_another()
            await second.says(503, f"cluster {sick.proxy.url}: ")
            assert (await second.healthz())[0] == 200

        await sick.says(200, "ok")
        await second.says(200, "ok")
        assert first.poll() is None
        first.kill()
        await asyncio.to_thread(first.wait)
        await ground.scale(2)
        await ground.until(lambda: ground.settled(2), 120, "the one that waited does the work")
        await ground.assert_one_instance_per_claim()


async def _behind(worker: Hurt, loop: str) -> bool:
    """Whether that loop has seen nothing for longer than an impatient worker's liveness gives it."""
    status, text = await worker.healthz()
    assert status in (0, 200), text
    age = re.search(rf"{loop}: last look (\d+) s ago", text)
    return age is not None and int(age[1]) > 26 and "has failed" in text


@pytest.mark.soak
async def test_a_temporal_server_that_falls_silent_is_found_again(ground: Ground) -> None:
    """Half-open: nothing is refused, nothing answers. The connections that fell silent never speak again."""
    async with hurt(ground) as sick:
        tunnel = await TcpProxy.to(ground.everything.temporal_address)
        try:
            sick.start_worker(TEMPORAL_ADDRESS=tunnel.address)
            [claim] = await settle(ground, 1)
            silence = Fault(hang=True)
            with tunnel.sick(silence):
                await ground.delete("NodeClaim", claim["metadata"]["name"])
                await asyncio.sleep(15)  # longer than a heartbeat may be late
                assert not await gone(ground, claim)
            await ground.until(lambda: gone(ground, claim), 180, "the claim is gone")
            await ground.until(lambda: ground.settled(1), 120, "the pod runs on a new node")
            await ground.assert_one_instance_per_claim()
            assert tunnel.done
        finally:
            ground.kill_workers()
            await tunnel.close()


@pytest.mark.soak
async def test_a_worker_that_is_frozen_is_replaced_and_does_no_harm_when_it_goes_on(ground: Ground) -> None:
    async with hurt(ground) as sick:
        sick.start_worker()
        [claim] = await settle(ground, 1)
        [frozen] = [worker for worker in ground.workers if worker.poll() is None]
        await ground.delete("NodeClaim", claim["metadata"]["name"])
        with paused(frozen):
            ground.workers.append(ground.everything.start_worker())
            await ground.until(lambda: gone(ground, claim), 120, "the claim is gone")
            await ground.until(lambda: ground.settled(1), 120, "the pod runs on a new node")
        await sick.says(200, "ok")
        await ground.until(lambda: ground.settled(1), 60, "the pod still runs")
        await ground.assert_one_instance_per_claim()
        await ground.assert_nothing_tainted_or_leaked()


async def _met(proxy: HttpProxy, fault: Fault) -> bool:
    return any(met == fault for met, _, _ in proxy.done)


async def _event(ground: Ground, reason: str) -> bool:
    events = (await ground.api.get("/api/v1/events")).body.get("items") or []
    return any(e["reason"] == reason and e["involvedObject"]["kind"] == "NodePool" for e in events)


async def _no_plan(ground: Ground, why: str) -> bool:
    log = (ground.everything.folder / "worker.log").read_text()
    return any("await_disruption_plan has failed" in line and why in line for line in log.splitlines())


async def _empty(ground: Ground) -> bool:
    return not await ground.claims()


async def _made(client: ApiClient, path: str) -> bool:
    return (await client.post(path, _lease())).status == 201


def _edit(user: str) -> Json:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def _lease() -> Json:
    now = format_time(time.time()).replace("Z", ".000000Z")
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "karpenter-leader-election"},
        "spec": {"holderIdentity": "karpenter-0_a", "leaseDurationSeconds": 300, "renewTime": now},
    }
