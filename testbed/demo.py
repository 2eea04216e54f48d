"""`make demo CLUSTER=real`: the demo's story on a real control plane and an AWS server over HTTP."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dovetail.answers.failures import CommandFailed
from dovetail.cli.demo.stage import Manifests
from dovetail.cli.demo.story import DemoStory
from dovetail.cli.demo.temporal_server import free_ports, stop_process
from dovetail.cli.output import complain, say
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.cloud.server import CloudError
from testbed.plane import ApiClient, PlaneError, TestbedUnavailable
from testbed.up import NODE_CLASS, Everything, folder_of, start, stop

# Where each kind is served: the collection, without its namespace.
PATHS = {
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "Deployment": "/apis/apps/v1/deployments",
}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class RealStage:
    """The stage of real servers, each with a name of its own."""

    def __init__(self, name: str = "demo") -> None:
        self.folder = folder_of(name)
        self.cluster = "dovetail"
        self.everything: Everything | None = None
        self.api: ApiClient | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.temporal_address = self.temporal_ui = self.url = ""
        self.temporal_binary = Path()
        self.manifests = Manifests(
            node_class=NODE_CLASS,
            node_class_ref={"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            requirements=[
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ],
        )

    async def prepare(self) -> list[str]:
        self.everything = await start(self.folder, worker=False)
        everything = self.everything
        self.cluster = everything.environment["CLUSTER_NAME"]
        self.temporal_address, self.temporal_ui = everything.temporal_address, everything.temporal_ui
        self.temporal_binary = Path(everything.temporal_binary)
        self.api = await ApiClient(everything.plane.kubeconfig, user_agent="dovetail-demo").__aenter__()
        await self.set_boot_delay(2.0)
        return [
            f"a control plane at {everything.plane.server}; KUBECONFIG={everything.plane.kubeconfig}",
            f"an AWS server at {everything.cloud.endpoint}, its ledger in {everything.cloud.ledger}",
            f"a Temporal server at {self.temporal_address}, its Web UI at {self.temporal_ui}",
        ]

    async def apply(self, body: Json) -> None:
        kind, name = body["kind"], body["metadata"]["name"]
        path = DEPLOYMENTS if kind == "Deployment" else PATHS[kind]
        answer = await self._api.patch(f"{path}/{name}", body)
        if answer.status == 404:
            answer = await self._api.post(path, body)
        if answer.status not in {200, 201}:
            raise CommandFailed(f"{kind} {name}: {answer.status} {answer.text[:300]}")

    async def scale(self, deployment: str, replicas: int) -> None:
        answer = await self._api.patch(f"{DEPLOYMENTS}/{deployment}", {"spec": {"replicas": replicas}})
        if answer.status != 200:
            raise CommandFailed(f"Deployment {deployment}: {answer.status} {answer.text[:300]}")

    async def objects(self, kind: str) -> list[Json]:
        items: list[Json] = (await self._api.get(PATHS[kind])).body.get("items") or []
        return items

    async def live_instances(self) -> int:
        return sum(1 for instance in await self._instances() if instance["state"] not in {"terminated"})

    async def launches(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for instance in await self._instances():
            uid = instance.get("tags", {}).get(names.CLAIM_UID_TAG, "")
            counts[uid] = counts.get(uid, 0) + 1
        return counts

    async def set_boot_delay(self, seconds: float) -> None:
        assert self.everything is not None
        cloud = self.everything.cloud
        await asyncio.to_thread(cloud.control, "PATCH", "world", {"bootSeconds": seconds})

    def looks_by(self) -> dict[str, str]:
        assert self.everything is not None
        return {**self.everything.environment, "DOVETAIL_URL": self.url}

    def start_worker(self) -> subprocess.Popen[bytes]:
        assert self.everything is not None
        (port,) = free_ports(1)  # one that was killed may hold its own for a while
        self.url = f"http://127.0.0.1:{port}"
        environment = {**self.everything.environment, "METRICS_PORT": str(port)}
        worker = replace(self.everything, environment=environment).start_worker()
        self.workers.append(worker)
        return worker

    async def close(self) -> None:
        for worker in self.workers:
            stop_process(worker)
        if self.api is not None:
            await self.api.__aexit__(None, None, None)
        await stop(self.folder)

    @property
    def _api(self) -> ApiClient:
        assert self.api is not None, "the stage is not prepared"
        return self.api

    async def _instances(self) -> list[dict[str, Any]]:
        assert self.everything is not None
        return await asyncio.to_thread(self.everything.cloud.instances)


async def _play() -> int:
    say("dovetail demo on real servers: starting")
    stage = RealStage()
    try:
        await DemoStory(stage).play()
    except (CommandFailed, PlaneError, TestbedUnavailable, CloudError) as error:
        complain(str(error))
        return 1
    finally:
        await stage.close()
    return 0


if __name__ == "__main__":
    code = asyncio.run(_play())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
