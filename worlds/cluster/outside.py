"""What an outsider sees of real servers: objects, the cloud's ledger, the audit log.

Nothing relies on what workflows report about themselves.
"""

import asyncio

from dovetail.adapters.kubernetes_json.rendering.events import COMPONENT
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.demo import PATHS
from testbed.plane import ApiClient, AuditEntry, AuditLog
from testbed.up import WORKER_USER, Everything
from worlds.cluster.objects import has_condition, is_tainted, owner_of


class Outside:
    """One set of servers, looked at."""

    def __init__(self, everything: Everything, api: ApiClient) -> None:
        self.everything, self.api = everything, api
        self.cloud = everything.cloud
        self.audit = AuditLog(everything.plane.audit_log)

    async def objects(self, kind: str) -> list[Json]:
        """All of a kind."""
        found: list[Json] = (await self.api.get(PATHS[kind])).body.get("items") or []
        return found

    async def claims(self) -> list[Json]:
        return await self.objects("NodeClaim")

    async def nodes(self) -> list[Json]:
        """Those of a NodePool."""
        return [n for n in await self.objects("Node") if names.NODE_POOL in (n["metadata"].get("labels") or {})]

    async def node(self, name: str) -> Json | None:
        return next((n for n in await self.nodes() if n["metadata"]["name"] == name), None)

    async def claim(self, name: str) -> Json | None:
        return next((c for c in await self.claims() if c["metadata"]["name"] == name), None)

    async def class_is_ready(self) -> bool:
        """Resolved by a worker, its profile made."""
        [found] = (await self.api.get("/apis/karpenter.k8s.aws/v1/ec2nodeclasses")).body["items"]
        return has_condition(found, "Ready") and bool(found["status"].get("instanceProfile"))

    async def running_pods(self) -> int:
        pods = [p for p in await self.objects("Pod") if "deletionTimestamp" not in p["metadata"]]
        return sum(1 for p in pods if p.get("status", {}).get("phase") == "Running")

    async def settled(self, pods: int) -> bool:
        """Exactly that many pods, all running, and every claim's node is initialised."""
        wanted = [p for p in await self.objects("Pod") if "deletionTimestamp" not in p["metadata"]]
        claims = await self.claims()
        ready = all(has_condition(c, names.INITIALIZED_CONDITION) for c in claims)
        return len(wanted) == pods and ready and await self.running_pods() == pods

    async def instances(self) -> list[Json]:
        """All that were ever launched."""
        return await asyncio.to_thread(self.cloud.instances)

    async def live(self) -> list[str]:
        return [i["id"] for i in await self.instances() if i["state"] not in {"terminated"}]

    async def nothing_left(self) -> bool:
        """No claim, no managed node, no instance."""
        return not await self.claims() and not await self.nodes() and not await self.live()

    async def instances_of(self, uid: str) -> list[Json]:
        """Every instance that was ever launched for a claim."""
        return [i for i in await self.instances() if i["tags"].get(names.CLAIM_UID_TAG) == uid]

    async def assert_one_instance_per_claim(self) -> None:
        """By the instances' tags; each made by exactly one call of the ledger.

        Those that a test has created by hand, for a takeover, have no profile; AWS launched the others with one.
        """
        instances = [i for i in await self.instances() if i["profile"]]
        by_claim: dict[str, list[str]] = {}
        for instance in instances:
            by_claim.setdefault(instance["tags"].get(names.CLAIM_UID_TAG, ""), []).append(instance["id"])
        doubles = {uid: ids for uid, ids in by_claim.items() if len(ids) != 1}
        assert not doubles, f"more than one instance for a claim: {doubles}"
        calls = await asyncio.to_thread(self.cloud.calls, "CreateFleet")
        made = [one for call in calls if not call.get("replayed") for one in call.get("instances") or []]
        assert sorted(made) == sorted(i["id"] for i in instances)

    async def assert_nothing_tainted_or_leaked(self) -> None:
        """Every node is schedulable, every live instance has its claim, no claim is marked or leaving."""
        claims = await self.claims()
        assert [n["metadata"]["name"] for n in await self.nodes() if is_tainted(n)] == []
        assert [c["metadata"]["name"] for c in claims if owner_of(c) or "deletionTimestamp" in c["metadata"]] == []
        uids = {c["metadata"]["uid"] for c in claims}
        live = [i for i in await self.instances() if i["state"] != "terminated"]
        assert {i["tags"].get(names.CLAIM_UID_TAG) for i in live} == uids

    async def assert_events_are_named(self) -> None:
        """Every Event of ours names its object and its reason. The API server's own sometimes do not."""
        events = (await self.api.get("/api/v1/events")).body.get("items") or []
        ours = [e for e in events if (e.get("source") or {}).get("component") == COMPONENT]
        bad = [e for e in ours if not (e.get("involvedObject") or {}).get("name") or not e.get("reason")]
        assert not bad, f"Events without an object's name or a reason: {bad}"

    def worker_calls(self, since: int = 0) -> list[AuditEntry]:
        """The worker's user's calls to the API server."""
        return [e for e in self.audit.entries(since) if e.user == WORKER_USER]
