"""Bursts on a real control plane: many pods at once on few nodes, over sixty, or one a node, up and back to none.

Each burst is timed from the moment when the API server took its first Deployment. Beside the seconds stand what the
burst cost: the worker's calls and conflicts, by the audit log, and the processor seconds of each part.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from acceptance.bench.live.at_rest import Figure, Resources
from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.fleets import workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import node_pool
from worlds.cluster.timeline import Timeline, moment

PATIENCE: Final = 300.0
ROOM: Final = 10_000
TEMPORAL: Final = "temporal"
WORKER: Final = "worker"
MEASURED_PODS: Final = 300  # of those that each need a node, when upstream was measured


def wide_pool() -> Json:
    """A pool of every instance type that the cloud sells on demand; its empty nodes leave."""
    pool = node_pool(consolidate_after="0s")
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    pool["spec"]["template"]["spec"]["requirements"] = [r for r in requirements if r["key"] != names.INSTANCE_TYPE]
    return pool


def spread_over(body: Json, key: str, skew: int = 1) -> Json:
    """The Deployment, its pods spread over that label of the nodes."""
    body["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": body["spec"]["selector"],
        }
    ]
    return body


def apart(body: Json) -> Json:
    """The Deployment, no two of its pods on one node."""
    term = {"labelSelector": body["spec"]["selector"], "topologyKey": names.HOSTNAME}
    body["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What a burst came to."""

    first_claim: float
    last_launched: float
    all_running: float
    nodes: int
    calls: int
    conflicts: int
    cpu: dict[str, float]

    @property
    def share(self) -> float:
        """Conflicts among the calls."""
        return self.conflicts / self.calls


async def grow(ground: Ground, pool: Json, bodies: list[Json]) -> Grown:
    """Apply the workloads at once and wait until all of their pods run."""
    await ground.apply(pool)
    await ground.until(ground.class_is_ready, 60, "the NodeClass is ready")
    pods = sum(body["spec"]["replicas"] for body in bodies)
    since, before = ground.audit.end(), Resources.of(ground)
    for body in bodies:
        await ground.apply(body)
    await ground.until(lambda: all_run(ground, pods), PATIENCE, f"{pods} pods run")
    await ground.until(lambda: ground.settled(pods), PATIENCE, "every node is initialised")
    after = Resources.of(ground)
    print(f"    {after.since(before)}", flush=True)
    line = Timeline(ground.audit.entries(since))
    start = min(moment(e) for e in line.writes if e.resource == "deployments")
    bound = max(moment(e) for e in line.writes if e.resource == "pods" and e.subresource == "binding")
    calls = line.calls()
    print(f"    calls: {', '.join(f'{count} {kind}' for kind, count in calls.kinds)}", flush=True)
    parts = {
        "created": line.created(),
        "launched": line.reached(names.LAUNCHED),
        "registered": line.reached(names.REGISTERED_CONDITION),
        "initialised": line.reached(names.INITIALIZED_CONDITION),
    }
    print_parts(parts, start)
    return Grown(
        first_claim=min(parts["created"].values()) - start,
        last_launched=max(parts["launched"].values()) - start,
        all_running=bound - start,
        nodes=len(parts["created"]),
        calls=calls.total,
        conflicts=calls.conflicts,
        cpu={name: spent - before.cpu.get(name, 0.0) for name, spent in after.cpu.items()},
    )


def print_parts(parts: Mapping[str, Mapping[str, float]], start: float) -> None:
    """When the first, the middle and the last object came to each part of its way, in seconds from the start."""
    for part, times in parts.items():
        spread = sorted(t - start for t in times.values())
        first, middle, last = spread[0], spread[len(spread) // 2], spread[-1]
        words = f"first {first:6.2f}  middle {middle:6.2f}  last {last:6.2f}"
        print(f"    {part:12} {len(spread):3}  {words}", flush=True)


async def all_run(ground: Ground, pods: int) -> bool:
    """Exactly that many pods, all of them running. While one waits, no more than that one is read: who looks must not
    take the processor from those who are measured."""
    waiting = await ground.api.get("/api/v1/pods?fieldSelector=status.phase!=Running&limit=1")
    if waiting.body["items"]:
        return False
    return len(await ground.objects("Pod")) == pods and await ground.running_pods() == pods


async def nothing_left(ground: Ground) -> bool:
    """Neither claim, node nor instance; the others are looked for when the last claim is gone."""
    claims = await ground.api.get("/apis/karpenter.sh/v1/nodeclaims?limit=1")
    return not claims.body["items"] and await ground.nothing_left()


def both(cpu: dict[str, float]) -> float:
    """Processor seconds of the worker and of Temporal."""
    return cpu[WORKER] + cpu[TEMPORAL]


def seconds(what: str, ours: float, upstream: str, aim: float) -> Figure:
    """A line of the table that is judged in seconds."""
    return Figure(what=what, ours=f"{ours:.1f} s", upstream=upstream, aim=f"{aim:g} s", met=ours <= aim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Five hundred pods at once, on a few large nodes."""

    pods: int

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From the Deployment to the first claim, and until all pods are bound."""
        grown = await grow(ground, wide_pool(), [workload("burst", "", self.pods, "500m")])
        what = f"{self.pods} pods at once"
        return [
            seconds(f"{what}, first claim", grown.first_claim, "7.9–8.1 s", 6),
            seconds("  all bound", grown.all_running, "17–21 s (running)", 15),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Pods that keep apart by node beside pods that are spread over the zones."""

    nodes: int
    others: int

    async def __call__(self, ground: Ground) -> list[Figure]:
        """Until all are bound; the spread must hold at the end."""
        lonely = apart(workload("lonely", "", self.nodes, "250m"))
        zonal = spread_over(workload("zonal", "", self.others, "250m"), names.ZONE)
        grown = await grow(ground, wide_pool(), [lonely, zonal])
        skew = await skew_of(ground, "zonal")
        what = f"{self.nodes + self.others} pods on {grown.nodes} nodes"
        return [
            seconds(f"{what}, all bound", grown.all_running, "19–35 s (running)", 15),
            Figure(what="  skew over zones", ours=str(skew), upstream="1", aim="1", met=skew <= 1),
            Figure(
                what="  processor, worker and Temporal",
                ours=f"{grown.cpu[WORKER]:.1f} + {grown.cpu[TEMPORAL]:.1f} s",
                upstream="3–4 s",
                aim="8 s",
                met=both(grown.cpu) <= 8,
            ),
        ]


async def skew_of(ground: Ground, app: str) -> int:
    """The most pods of a zone less the fewest, over the zones that have nodes."""
    zone_of = {n["metadata"]["name"]: n["metadata"]["labels"].get(names.ZONE, "") for n in await ground.nodes()}
    count = Counter(dict.fromkeys(zone_of.values(), 0))
    for pod in await ground.objects("Pod"):
        if (pod["metadata"].get("labels") or {}).get("app") == app:
            count[zone_of.get(pod["spec"].get("nodeName", ""), "")] += 1
    return max(count.values()) - min(count.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class OneEach:
    """Pods that each need a node of their own, and then none at all."""

    pods: int
    up: float = 40
    down: float = 45
    calls: int = 6000
    cpu: float = 25

    async def __call__(self, ground: Ground) -> list[Figure]:
        """Up, then down to nothing."""
        # A subnet's addresses would end the burst, and with it the measurement.
        subnets = ground.cloud.control("GET", "world")["subnets"]
        ground.world({"subnets": [{**each, "free": ROOM} for each in subnets]})
        try:
            return await self.there_and_back(ground)
        finally:
            ground.world({"subnets": subnets})

    async def there_and_back(self, ground: Ground) -> list[Figure]:
        """All pods bound, then none left."""
        grown = await grow(ground, wide_pool(), [apart(workload("each", "", self.pods, "250m"))])
        since, before = ground.audit.end(), Resources.of(ground)
        answer = await ground.api.patch("/apis/apps/v1/namespaces/default/deployments/each", {"spec": {"replicas": 0}})
        assert answer.status == 200, answer.text
        await ground.until(lambda: nothing_left(ground), PATIENCE, "no claim, node or instance is left")
        print(f"    {Resources.of(ground).since(before)}", flush=True)
        line = Timeline(ground.audit.entries(since))
        print(f"    calls: {', '.join(f'{count} {kind}' for kind, count in line.calls().kinds)}", flush=True)
        scaled = min(moment(e) for e in line.writes if e.resource == "deployments")
        parts = {
            "marked": line.tainted(),
            "deleted": line.deleted(),
            "drained": line.reached(names.DRAINED),
            "terminating": line.reached(names.INSTANCE_TERMINATING),
            "released": line.released(),
        }
        print_parts(parts, scaled)
        empty = max(parts["released"].values()) - scaled
        what, whole = f"{self.pods} pods, one a node", self.pods == MEASURED_PODS
        return [
            seconds(f"{what}, all bound", grown.all_running, "41 s (running)" if whole else "–", self.up),
            seconds("  then to zero", empty, "65 s" if whole else "–", self.down),
            Figure(
                what="  calls, conflicts while growing",
                ours=f"{grown.calls}, {grown.share:.1%}",
                upstream="11,766, 8.9 %" if whole else "–",
                aim=f"{self.calls:,}, < 1 %",
                met=grown.calls <= self.calls and grown.share < 0.01,
            ),
            Figure(
                what="  processor of the worker while growing",
                ours=f"{grown.cpu[WORKER]:.1f} s, Temporal {grown.cpu[TEMPORAL]:.1f} s",
                upstream="35 s" if whole else "–",
                aim=f"{self.cpu:g} s",
                met=grown.cpu[WORKER] <= self.cpu,
            ),
        ]


GROWING: Final[dict[str, Callable[[Ground], Awaitable[list[Figure]]]]] = {
    "burst_500": Burst(pods=500),
    "spread_60": Spread(nodes=60, others=240),
    "one_each_300": OneEach(pods=MEASURED_PODS),
    "one_each_100": OneEach(pods=100, up=20, down=25, calls=2000, cpu=8.4),
}
