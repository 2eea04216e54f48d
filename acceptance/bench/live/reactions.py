"""Measures how late each cause of disruption is acted upon once it is due, until the taint.

Three nodes at rest, a cause, and the moments of both ends as the API server's audit log has them (the opening of a
budget's window is a minute of the clock). Drift is acted upon at once; empty nodes wait for `consolidateAfter` and for
the second look after 15 s, which are both taken off the figure.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from acceptance.bench.live.at_rest import Figure, budget, settle
from dovetail.model import names
from dovetail.model.values.json import Json
from testbed.plane import AuditEntry
from worlds.cluster.ground import Ground
from worlds.cluster.objects import has_condition, no_eviction, node_pool
from worlds.cluster.timeline import Timeline, moment

NODES: Final = 3
AIM_SECONDS: Final = 1.0
CONSOLIDATE_AFTER: Final = 10.0
SECOND_LOOK: Final = 15.0
STAMPED_IN: Final = 1.0  # a claim is stamped in whole seconds, so quiet may seem to begin that much earlier
STEADY_SECONDS: Final = 3.0  # what is held back stays so this long before it is let go

Release = Callable[[Ground], Awaitable[float]]  # brings the cause about, returns when it was due


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason why nodes may leave from a certain moment on."""

    what: str
    upstream: str
    release: Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """One cause over three nodes at rest."""

    cause: Cause

    async def __call__(self, ground: Ground) -> list[Figure]:
        """From the moment that it was due to the last of the three taints."""
        await settle(ground, NODES, node_pool(consolidate_after=f"{CONSOLIDATE_AFTER:.0f}s"))
        since = ground.audit.end()
        due = await self.cause.release(ground)

        async def tainted() -> bool:
            return len(Timeline(ground.audit.entries(since)).tainted()) == NODES

        await ground.until(tainted, 120, "all three are tainted")
        late = sorted(at - due for at in Timeline(ground.audit.entries(since)).tainted().values())
        print(f"    {', '.join(f'{each:.2f}' for each in late)} s", flush=True)
        assert late[0] > -STAMPED_IN, f"tainted {-late[0]:.2f} s before it was due"
        return [
            Figure(
                what=f"{self.cause.what} to taint",
                ours=f"{late[-1]:.2f} s",
                upstream=self.cause.upstream,
                aim=f"{AIM_SECONDS:g} s",
                met=late[-1] < AIM_SECONDS,
            )
        ]


def green(allowed: str = "100%") -> Json:
    """The pool with another template: its nodes drift."""
    return budget(node_pool(colour="green", consolidate_after=f"{CONSOLIDATE_AFTER:.0f}s"), allowed)


async def held_back(ground: Ground, pool: Json) -> None:
    """The nodes have drifted, and none of them leaves."""
    await ground.apply(pool)

    async def drifted() -> bool:
        return all(has_condition(claim, names.DRIFTED) for claim in await ground.claims())

    await ground.until(drifted, 60, "all have drifted")
    since = ground.audit.end()
    await asyncio.sleep(STEADY_SECONDS)
    assert not Timeline(ground.audit.entries(since)).tainted(), "something was held back and went"


async def latest(ground: Ground, since: int, wanted: Callable[[AuditEntry], bool]) -> float:
    """When the last such write came in."""
    return max(moment(e) for e in Timeline(ground.audit.entries(since)).writes if wanted(e))


async def drift(ground: Ground) -> float:
    since = ground.audit.end()
    await ground.apply(green())
    return await latest(ground, since, lambda e: e.resource == "nodepools" and e.user != "dovetail")


async def open_budget(ground: Ground) -> float:
    await held_back(ground, green("0"))
    since = ground.audit.end()
    await ground.apply(green())
    return await latest(ground, since, lambda e: e.resource == "nodepools" and e.user != "dovetail")


async def lift_pod_budget(ground: Ground) -> float:
    await ground.apply(no_eviction())
    await held_back(ground, green())
    since = ground.audit.end()
    await ground.delete("PodDisruptionBudget", "web")
    return await latest(ground, since, lambda e: e.resource == "poddisruptionbudgets" and e.verb == "delete")


async def lift_protection(ground: Ground) -> float:
    pods = [f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}" for pod in await ground.objects("Pod")]
    for pod in pods:
        await ground.api.patch(pod, {"metadata": {"annotations": {names.DO_NOT_DISRUPT: "true"}}})
    await held_back(ground, green())
    since = ground.audit.end()
    for pod in pods:
        await ground.api.patch(pod, {"metadata": {"annotations": {names.DO_NOT_DISRUPT: None}}})
    return await latest(ground, since, lambda e: e.resource == "pods" and e.verb == "patch" and not e.subresource)


async def open_window(ground: Ground) -> float:
    """A window of a minute in which nothing may leave ends with a minute of the clock."""
    opens = (int(time.time() + STEADY_SECONDS + 10) // 60 + 1) * 60
    minute = time.gmtime(opens - 60).tm_min
    pool = green()
    pool["spec"]["disruption"]["budgets"] = [{"nodes": "0", "schedule": f"{minute} * * * *", "duration": "1m"}]
    await asyncio.sleep(opens - 60 + 0.1 - time.time())
    await held_back(ground, pool)
    return float(opens)


async def empty(ground: Ground) -> float:
    """All pods are deleted at once; quiet begins with the first of them (DIS-163)."""
    since = ground.audit.end()
    await ground.scale(0)

    async def none_left() -> bool:
        return not await ground.objects("Pod")

    await ground.until(none_left, 60, "no pod is left")
    deletes = [e for e in Timeline(ground.audit.entries(since)).writes if e.resource == "pods" and e.verb == "delete"]
    return min(moment(e) for e in deletes) + CONSOLIDATE_AFTER + SECOND_LOOK


CAUSES: Final[dict[str, Cause]] = {
    "drift": Cause(what="a changed template", upstream="0.6–5.5 s", release=drift),
    "budget": Cause(what="a budget that opens", upstream="up to 10 s", release=open_budget),
    "window": Cause(what="a window that opens", upstream="up to 10 s", release=open_window),
    "pdb": Cause(what="a PDB that is lifted", upstream="15.8–16.0 s (replaced)", release=lift_pod_budget),
    "protection": Cause(what="a protection that is lifted", upstream="9.9–11.6 s (replaced)", release=lift_protection),
    "empty": Cause(what="consolidateAfter and 15 s", upstream="0.1–6.4 s", release=empty),
}
