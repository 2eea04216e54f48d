"""The ground of scenes on real nodes: a cluster, what a person types there, and what can be seen of it."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from dovetail.model.values.json import Json
from testbed.demo import PATHS
from testbed.node.cluster import ROOT, Cluster
from testbed.plane import ApiClient
from worlds.patience import CROWDED

T = TypeVar("T")
LOOK_SECONDS = 0.2
WORKERS = "app.kubernetes.io%2Fcomponent%3Dworker"
NAMESPACE = "dovetail"
INSTALLED = (
    "--namespace dovetail --create-namespace --set cloud=kwok --set settings.clusterName=kind"
    " --set temporal.mode=dev --set image.tag=kind"
)


class RealGround:
    """One cluster with real nodes."""

    def __init__(self, cluster: Cluster, api: ApiClient) -> None:
        self.cluster, self.api = cluster, api

    @property
    def environment(self) -> dict[str, str]:
        """A person's: kubectl, helm and dovetail on the PATH, the kubeconfig, and nothing else of ours."""
        places = (str(self.cluster.programs), str(Path(sys.executable).parent), os.environ["PATH"])
        home = str(self.cluster.folder / "home")
        return {"PATH": os.pathsep.join(places), "HOME": home, "KUBECONFIG": str(self.cluster.plane.kubeconfig)}

    async def typed(self, line: str, seconds: float = 300.0) -> str:
        """What it printed; one that fails is a failure."""
        process = await asyncio.create_subprocess_exec(
            *("/bin/bash", "-c", line),
            cwd=ROOT,
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(CROWDED * seconds):
            said, _ = await process.communicate()
        assert process.returncode == 0, f"{line}: {said.decode()}"
        return said.decode()

    async def objects(self, path: str, labels: str = "") -> list[Json]:
        """All below that path with these labels, written as in a query."""
        answer = await self.api.get(f"{path}?labelSelector={labels}")
        assert answer.status == 200, answer.text[:300]
        return list(answer.body["items"])

    async def claims(self) -> list[Json]:
        return await self.objects(PATHS["NodeClaim"])

    async def nodes(self, labels: str = "") -> list[Json]:
        return await self.objects("/api/v1/nodes", labels)

    async def pods(self, labels: str, namespace: str = "default") -> list[Json]:
        return await self.objects(f"/api/v1/namespaces/{namespace}/pods", labels)

    async def workers(self) -> list[Json]:
        return await self.pods(WORKERS, NAMESPACE)

    async def until(self, look: Callable[[], Awaitable[T]], seconds: float, words: str) -> T:
        """The first answer that is true."""
        deadline = time.monotonic() + CROWDED * seconds
        while not (answer := await look()):
            assert time.monotonic() < deadline, f"not within {CROWDED * seconds:.0f} s: {words}; {await self._seen()}"
            await asyncio.sleep(LOOK_SECONDS)
        return answer

    async def _seen(self) -> str:
        claims = [(each["metadata"]["name"], each["metadata"].get("deletionTimestamp")) for each in await self.claims()]
        pods = await self.objects("/api/v1/pods")
        return f"claims {claims}, pods {[(each['metadata']['name'], each['status'].get('phase')) for each in pods]}"


def ready(body: Json) -> bool:
    """A pod or a node that says so and is not going."""
    conditions: list[Mapping[str, str]] = body.get("status", {}).get("conditions") or []
    says = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return says and "deletionTimestamp" not in body["metadata"]


def restarts(pod: Json) -> int:
    """How often its containers were started again."""
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses", []))
