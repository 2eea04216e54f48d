"""Ten good pods on a real control plane, alone and beside trouble: do they wait longer for their nodes?

The same ten pods are started on an empty cluster, then beside pods that are made to do harm, beside another pool whose
claims an admission policy refuses, and beside pods that fit nowhere. The time of the first round is the measure for the
others, so that a slow machine is slow in all of them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import ClientPayloadError

from acceptance.bench.live.at_rest import Figure
from acceptance.bench.live.growing import PATIENCE, seconds
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground
from worlds.cluster.objects import DEPLOYMENTS
from worlds.cluster.timeline import Timeline, moment
from worlds.cluster.trouble import PODS, allow_again, create_pods, hostile_pods, refuse_claims_of

GOOD: Final = "good"
REFUSED: Final = "refused"
HOPELESS: Final = "hopeless"
TEN: Final = 10
LATER: Final = 1.0  # seconds that trouble may cost
QUIET_SECONDS: Final = 5.0
QUIET_WRITES: Final = 50  # leases and statuses
SETTLING_SECONDS: Final = 15.0  # what was there before has been looked at more than once

Trouble = Callable[[Ground], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def hostile(ground: Ground) -> AsyncIterator[None]:
    """Pods that nobody can judge, some of them bound to a node."""
    await ground.apply(workload("first", GOOD, 1))
    await ground.until(lambda: ground.settled(1), PATIENCE, "the first pod runs")
    [node] = await ground.nodes()
    made = await create_pods(ground, hostile_pods(node["metadata"]["name"]))
    yield
    for name in made:
        await ground.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})


@asynccontextmanager
async def refused(ground: Ground) -> AsyncIterator[None]:
    """Ten pods of another pool, whose claims an admission policy refuses."""
    await ground.apply(fleet_pool(REFUSED))
    await refuse_claims_of(ground, REFUSED)
    try:
        await ground.apply(workload(REFUSED, REFUSED, TEN))
        yield
    finally:
        await allow_again(ground)


def hopeless(pods: int) -> Trouble:
    """That many pods that no instance type holds, and that everybody has said so of: some ten thousand Events later."""

    @asynccontextmanager
    async def beside(ground: Ground) -> AsyncIterator[None]:
        await ground.apply(workload(HOPELESS, GOOD, pods, "900"))

        async def all_wait() -> bool:
            found = (await ground.api.get(f"{PODS}?limit=1")).body
            return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0) >= pods

        await ground.until(all_wait, PATIENCE, f"{pods} pods wait")
        await ground.until(lambda: _said(ground), PATIENCE, "nearly nothing is written any more")
        yield
        await ground.api.delete(f"{DEPLOYMENTS}/{HOPELESS}", {"propagationPolicy": "Background"})
        await ground.until(lambda: _deleted(ground), PATIENCE, "the pods are deleted")

    return beside


async def _said(ground: Ground) -> bool:
    """Whether hardly anything was written for a few seconds."""
    since = ground.audit.end()
    await asyncio.sleep(QUIET_SECONDS)
    return len(Timeline(ground.audit.entries(since)).writes) < QUIET_WRITES


async def _deleted(ground: Ground) -> bool:
    """All pods, in as many calls as it takes: the API server ends one that lasts longer than a minute."""
    with suppress(ClientPayloadError):
        await ground.api.delete(PODS, {"gracePeriodSeconds": 0})
    return not (await ground.api.get(f"{PODS}?limit=1")).body["items"]


def nothing(ground: Ground) -> AbstractAsyncContextManager[None]:
    """An empty cluster."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds from when the kube-scheduler had given all ten pods up."""

    first_claim: float
    last_claim: float
    all_bound: float

    def words(self) -> str:
        """In a line."""
        return f"first claim {self.first_claim:.2f} s, last {self.last_claim:.2f} s, all bound {self.all_bound:.2f} s"


async def start_ten(ground: Ground) -> Times:
    """Start the ten pods, wait until all are bound, and read from the audit log what happened when."""
    await asyncio.sleep(SETTLING_SECONDS)
    since = ground.audit.end()
    await ground.apply(workload(GOOD, GOOD, TEN))

    async def all_bound() -> bool:
        found = (await ground.api.get(f"{PODS}?labelSelector=app={GOOD}")).body["items"]
        return len(found) == TEN and all(pod["spec"].get("nodeName") for pod in found)

    await ground.until(all_bound, PATIENCE, "ten good pods are bound")
    line = Timeline(ground.audit.entries(since))
    good = [e for e in line.writes if e.resource == "pods" and e.name.startswith(f"{GOOD}-")]
    given_up = dict[str, float]()
    for entry in good:
        if entry.subresource == "status" and entry.user == "system:kube-scheduler":
            given_up.setdefault(entry.name, moment(entry))
    start = max(given_up.values())
    claims = line.created().values()
    bound = max(moment(e) for e in good if e.subresource == "binding")
    return Times(first_claim=min(claims) - start, last_claim=max(claims) - start, all_bound=bound - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Ten good pods alone, then beside each kind of trouble."""

    troubles: dict[str, Trouble]

    async def __call__(self, ground: Ground) -> list[Figure]:
        """A line for each kind, beside the time without it."""
        figures = []
        alone = None
        for name, trouble in {"alone": nothing, **self.troubles}.items():
            await ground.apply(fleet_pool(GOOD))
            await ground.until(ground.class_is_ready, 60, "the NodeClass is ready")
            async with trouble(ground):
                times = await start_ten(ground)
                print(f"    {name}: {times.words()}", flush=True)
            await ground.clear()
            alone = alone or times
            what = f"ten good pods, {name}: last claim"
            figures.append(seconds(what, times.last_claim, "–", alone.last_claim + LATER))
        return figures


BESIDE: Final[dict[str, Callable[[Ground], Awaitable[list[Figure]]]]] = {
    "beside_trouble": Beside(troubles={"beside hostile pods": hostile, "beside a refused pool": refused}),
    "beside_hopeless": Beside(troubles={"beside 10,000 hopeless pods": hopeless(10_000)}),
}
