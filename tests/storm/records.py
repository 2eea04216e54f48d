"""What the API server and the cloud wrote down of a storm: nothing is taken from workers or workflows.

Marks are read from the audit log, each write in the order of etcd's own revisions; launches and ends from the cloud's
ledger and its instances; how long pods waited from the pods themselves, looked at twice a second.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from tests.cluster.days.looks import looked_at
from worlds.cluster.ground import Ground
from worlds.cluster.objects import owner_of
from worlds.cluster.timeline import has_true


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of it. Instances by id, claims by UID, pools by name."""

    doubled: dict[str, list[str]]  # instances of claims that have had more than one
    left_behind: set[str]  # live instances without a claim
    lost: set[str]  # claims without a live instance
    unexplained: set[str]  # instances that no call made, or several
    launched: int
    most_marked: dict[str, int]  # nodes of a pool that were marked at once
    marks: int
    longest_wait: float  # seconds, of a pod for its node
    pods: int

    def line(self) -> str:
        """For the table in docs/soak.md."""
        most = max(self.most_marked.values(), default=0)
        return (
            f"{self.launched} instances, {self.marks} marks, at most {most} of a pool at once; {self.pods} pods, "
            f"the longest wait for a node {self.longest_wait:.0f} s"
        )


class Records:
    """Everything that is written from now on."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._since = ground.audit.end()
        self._before: set[str] = set()
        self._waits: dict[str, float] = {}

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Pods are looked at within the block. A look while the API server is away sees nothing and is none."""
        self._before = {each["id"] for each in await self._ground.instances()}
        async with looked_at(self._ground, "Pod", self._look):
            yield

    def _look(self, pods: list[Json]) -> None:
        for pod in pods:
            self._waits[pod["metadata"]["uid"]] = waited(pod, time.time())

    def writes(self) -> list[AuditEntry]:
        """What has been written to the API server so far."""
        return self._ground.audit.entries(self._since)

    async def judge(self, writes: Iterable[AuditEntry]) -> Verdict:
        """By the instances and claims that there are now, and by these writes for the marks."""
        instances = [each for each in await self._ground.instances() if each["profile"]]
        claims = {each["metadata"]["uid"] for each in await self._ground.claims()}
        by_claim: dict[str, list[str]] = {}
        for each in instances:
            by_claim.setdefault(_claim_of(each), []).append(each["id"])
        live = {each["id"]: _claim_of(each) for each in instances if each["state"] != "terminated"}
        most, marks = most_marked(writes)
        calls = await asyncio.to_thread(self._ground.cloud.calls, "CreateFleet")
        made = [one for call in calls if not call.get("replayed") for one in call.get("instances") or []]
        return Verdict(
            doubled={uid: ids for uid, ids in by_claim.items() if len(ids) != 1},
            left_behind={identity for identity, uid in live.items() if uid not in claims},
            lost=claims - set(live.values()),
            unexplained={each["id"] for each in instances if made.count(each["id"]) != 1},
            launched=sum(1 for each in instances if each["id"] not in self._before),
            most_marked=most,
            marks=marks,
            longest_wait=max(self._waits.values(), default=0.0),
            pods=len(self._waits),
        )


def _claim_of(instance: Json) -> str:
    return str(instance["tags"].get(names.CLAIM_UID_TAG, ""))


def waited(pod: Json, now: float) -> float:
    """How long a pod has waited for its node, or did; one that is deleted waits no more."""
    created = _moment(pod["metadata"]["creationTimestamp"])
    conditions = pod.get("status", {}).get("conditions") or []
    bound = [c["lastTransitionTime"] for c in conditions if (c["type"], c["status"]) == ("PodScheduled", "True")]
    ended = [*bound, *([pod["metadata"]["deletionTimestamp"]] if "deletionTimestamp" in pod["metadata"] else [])]
    return min([_moment(each) for each in ended], default=now) - created


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def most_marked(writes: Iterable[AuditEntry]) -> tuple[dict[str, int], int]:
    """By pool, how many NodeClaims bore the mark of a disruption at once, and how many marks there were at all.

    A claim no longer counts once its instance is terminating (DIS-50), or its last finalizer is off.
    """
    bodies = [e.response for e in writes if e.resource == "nodeclaims" and e.is_write and e.code < 300]
    claims = [body for body in bodies if body is not None and body.get("kind") == "NodeClaim"]
    marked: dict[str, set[str]] = {}
    most: dict[str, int] = {}
    marks = 0
    for claim in sorted(claims, key=lambda body: int(body["metadata"]["resourceVersion"])):
        pool = claim["metadata"]["labels"][names.NODE_POOL]
        of_pool, uid = marked.setdefault(pool, set()), claim["metadata"]["uid"]
        if not owner_of(claim) or _is_ended(claim):
            of_pool.discard(uid)
        elif uid not in of_pool:
            of_pool.add(uid)
            marks += 1
            most[pool] = max(most.get(pool, 0), len(of_pool))
    return most, marks


def _is_ended(claim: Json) -> bool:
    metadata = claim["metadata"]
    gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
    return gone or has_true(claim, names.INSTANCE_TERMINATING)
