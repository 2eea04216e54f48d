"""A corner of a cluster that a scene has to itself while others are played beside it: a NodePool, a Namespace and a
label, all of its name. It is spoken to as by a person: kubectl, and the command line in a process of its own."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from worlds.cluster.fleets import fleet_pool, pool_claims, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition, is_tainted
from worlds.loaded.processes import run_command

T = TypeVar("T")

GUIDES: Final = Path(__file__).parents[3] / "docs" / "guides"
LABEL: Final = "scene"  # of NodePools, for the selectors of policies
HOOKS: Final = ("pre-drain.hook.", "pre-terminate.hook.")
EVERY: Final = 1.0  # seconds between looks: many scenes look at one API server
ALL: Final[Json] = {"budgets": [{"nodes": "100%"}]}


def of_guide(page: str, kind: str, name: str) -> Json:
    """The manifest of that kind and name as it stands in a guide."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", (GUIDES / page).read_text(), re.DOTALL | re.MULTILINE)
    bodies = [body for block in blocks for body in yaml.safe_load_all(block) if isinstance(body, dict)]
    return next(body for body in bodies if body.get("kind") == kind and body.get("metadata", {}).get("name") == name)


@dataclass(frozen=True, slots=True)
class Corner:
    """What a scene does, and what it sees of its own objects."""

    ground: Ground
    name: str
    since: int  # where the audit log stood when the scene began

    # What a person types

    async def kubectl(self, *words: str, told: str = "") -> str:
        """Its output; it must succeed."""
        process = await asyncio.create_subprocess_exec(
            *(str(self.ground.everything.plane.kubectl), *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate(told.encode())
        assert process.returncode == 0, f"kubectl {' '.join(words)}: {said.decode()}"
        return said.decode()

    async def apply(self, *bodies: Json) -> None:
        """`kubectl apply -f`, of one file."""
        await self.kubectl("apply", "-f", "-", told=yaml.safe_dump_all(bodies))

    async def asked(self, *words: str) -> tuple[int, str]:
        """The command line under an administrator's kubeconfig: its exit code, and its words on one line."""
        kubeconfig = {"KUBECONFIG": str(self.ground.everything.plane.kubeconfig)}
        environment = {**os.environ, **self.ground.everything.environment, **kubeconfig}
        code, out, err = await run_command([sys.executable, "-m", "dovetail.cli.main", *words], environment)
        return code, " ".join((err + out).decode().split())

    async def dovetail(self, *words: str) -> str:
        """The same, which must succeed."""
        code, said = await self.asked(*words)
        assert code == 0, f"dovetail {' '.join(words)}: {said}"
        return said

    async def document(self, *words: str) -> Any:
        """What `--json` prints."""
        said = await self.dovetail(*words, "--json")
        return json.loads(said[said.index("{") :])

    # Its objects

    def pool(self, colour: str = "blue", types: tuple[str, ...] = ("m5.xlarge",), **changes: Any) -> Json:
        """Its NodePool; another colour makes its nodes drift."""
        body = fleet_pool(self.name, colour, types, **{"disruption": ALL, **changes})
        body["metadata"]["labels"] = {LABEL: self.name}
        return body

    def workload(self, pods: int, cpu: str = "3", name: str = "web", **pod: Any) -> Json:
        """Pods for its nodes; of three cpus each has a node of the usual type to itself."""
        body: Any = workload(name, self.name, pods, cpu)
        body["metadata"]["namespace"] = self.name
        body["spec"]["template"]["spec"] |= pod
        found: Json = body
        return found

    def rule(self, body: Json, **spec: Any) -> Json:
        """A DisruptionPolicy of a guide under this scene's name, for its NodePool alone."""
        selected = {"nodePoolSelector": {"matchLabels": {LABEL: self.name}}}
        return {**body, "metadata": {"name": self.name}, "spec": {**body["spec"], **selected, **spec}}

    def policy(self, **spec: Any) -> Json:
        """A DisruptionPolicy for its NodePool."""
        return self.rule({"apiVersion": "dovetail.sh/v1alpha1", "kind": "DisruptionPolicy", "spec": {}}, **spec)

    # What stands

    async def claims(self) -> list[Json]:
        return await pool_claims(self.ground, self.name)

    async def claim(self, name: str) -> Json | None:
        return next((each for each in await self.claims() if each["metadata"]["name"] == name), None)

    async def nodes(self) -> list[Json]:
        found = await self.ground.nodes()
        return [node for node in found if node["metadata"]["labels"][names.NODE_POOL] == self.name]

    async def tainted(self) -> list[str]:
        return [node["metadata"]["name"] for node in await self.nodes() if is_tainted(node)]

    async def pods(self) -> list[Json]:
        """Those that are not leaving."""
        found = (await self.ground.api.get(f"/api/v1/namespaces/{self.name}/pods")).body.get("items") or []
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def instances(self) -> list[Json]:
        """All that were ever launched for it, by the cloud's own word."""
        found = await self.ground.instances()
        return [each for each in found if each["tags"].get("karpenter.sh/nodepool") == self.name]

    async def running(self, key: str = "type") -> list[str]:
        """What its running instances are, sorted."""
        return sorted(each[key] for each in await self.instances() if each["state"] == "running")

    async def object(self, kind: str, name: str = "") -> Json:
        """By kubectl; by default that of its own name."""
        found: Json = json.loads(await self.kubectl("get", kind, name or self.name, "-o", "json"))
        return found

    async def condition(self, kind: str, wanted: str, name: str = "") -> Json:
        found = (await self.object(kind, name)).get("status", {}).get("conditions") or []
        return dict(next((each for each in found if each["type"] == wanted), {}))

    async def events(self, reason: str) -> list[Json]:
        """About its objects, or about any of them: a Node's stand in the namespace default."""
        path = f"/api/v1/events?fieldSelector=reason={reason}"
        mine = {self.name, *[each["metadata"]["name"] for each in [*await self.claims(), *await self.nodes()]]}
        found = (await self.ground.api.get(path)).body.get("items") or []
        return [e for e in found if e["involvedObject"]["name"] in mine or e["metadata"]["namespace"] == self.name]

    async def settled(self, pods: int, nodes: int | None = None) -> bool:
        """Exactly that many pods, all running, and each of the nodes is up and stays."""
        found, claims = await self.pods(), await self.claims()
        run = [pod for pod in found if pod["status"].get("phase") == "Running"]
        up = [
            c
            for c in claims
            if has_condition(c, names.INITIALIZED_CONDITION) and "deletionTimestamp" not in c["metadata"]
        ]
        return len(found) == len(run) == pods and len(up) == len(claims) == (len(claims) if nodes is None else nodes)

    async def settle(self, pods: int, nodes: int | None = None) -> None:
        words = f"{self.name}: {pods} pods run on {'its' if nodes is None else nodes} nodes"
        await self.until(lambda: self.settled(pods, nodes), 120, words)

    async def left(self, names_of: Iterable[str]) -> set[str]:
        """Which of these NodeClaims still stand."""
        return set(names_of) & {claim["metadata"]["name"] for claim in await self.claims()}

    async def until(self, look: Callable[[], Awaitable[T]], seconds: float, words: str) -> T:
        return await self.ground.until(look, seconds, f"{self.name}: {words}", every=EVERY)

    async def says(self, words: str, *command: str, seconds: float = 60) -> None:
        """Until the command says so, whatever its exit code."""

        async def said() -> bool:
            return words in (await self.asked(*command))[1]

        await self.until(said, seconds, f"dovetail {' '.join(command)} says: {words}")

    # What was done

    def calls(self) -> list[AuditEntry]:
        """The worker's, about anything."""
        return self.ground.worker_calls(self.since)

    def evictions(self) -> list[str]:
        """Its pods that the worker had leave, one for each."""
        return [
            e.name for e in self.calls() if e.subresource == "eviction" and e.namespace == self.name and e.code == 201
        ]

    def made(self) -> list[str]:
        """The NodeClaims that were made for it."""
        found = [
            e.response or {}
            for e in self.calls()
            if e.resource == "nodeclaims" and e.verb == "create" and e.code == 201
        ]
        return [b["metadata"]["name"] for b in found if b["metadata"]["labels"][names.NODE_POOL] == self.name]

    # Before and after

    async def prepare(self) -> None:
        await self.kubectl("create", "namespace", self.name)

    async def leave(self) -> None:
        """Nothing of it may hold the nodes of whoever comes next."""
        await self.kubectl("delete", "nodepool", self.name, "--ignore-not-found", "--wait=false")
        await self.kubectl("delete", "namespace", self.name, "--ignore-not-found", "--wait=false")
        await self.kubectl("delete", "ec2nodeclass", self.name, "--ignore-not-found", "--wait=false")
        for claim in await self.claims():
            hooks = [key for key in claim["metadata"].get("annotations") or {} if key.startswith(HOOKS)]
            if hooks:
                await self.kubectl("annotate", "nodeclaim", claim["metadata"]["name"], *[f"{key}-" for key in hooks])


Play = Callable[[Corner], Awaitable[None]]


async def corner_for(ground: Ground, play: Play) -> Corner:
    """Named by the scene's first words."""
    words: list[str] = play.__name__.removeprefix("test_").split("_")
    found = Corner(ground, "-".join(words)[:40].strip("-"), ground.audit.end())
    await found.prepare()
    return found
