"""Scenes from which several acceptance tests start: pods that run, a drifted node whose replacement takes its time."""

from dovetail.model import names
from dovetail.model.values.json import Json
from worlds.cluster.ground import Ground
from worlds.cluster.objects import deployment, has_condition, is_tainted, node_pool, owner_of

NEVER = 3600.0  # a boot that no test waits for


async def settle(ground: Ground, pods: int, cpu: str = "3", pool: Json | None = None) -> list[Json]:
    """That many pods run on nodes that have not drifted; of three cpus each has a node to itself. The claims."""
    pool = pool or node_pool()
    await ground.apply(pool)
    await ground.apply(deployment(pods, cpu))
    colour = pool["spec"]["template"]["metadata"]["labels"]["colour"]

    async def as_applied() -> bool:
        return await ground.settled(pods) and all(
            claim["metadata"]["labels"]["colour"] == colour for claim in await ground.claims()
        )

    await ground.until(as_applied, 120, f"{pods} pods run on initialised nodes of the pool as it is")
    return await ground.claims()


async def a_slow_replacement(ground: Ground) -> tuple[Json, Json]:
    """A drifted node is tainted and its replacement never boots. Both claims."""
    [drifted] = await settle(ground, 1)
    ground.world({"bootSeconds": NEVER})
    await ground.apply(node_pool(colour="green"))

    async def waits() -> tuple[Json, Json] | None:
        claims = await ground.claims()
        marked = [c for c in claims if owner_of(c)]
        launched = [c for c in claims if not owner_of(c) and has_condition(c, names.LAUNCHED)]
        node = await ground.node(drifted["status"]["nodeName"])
        return (marked[0], launched[0]) if marked and launched and node and is_tainted(node) else None

    found = await ground.until(waits, 120, "the drifted node is tainted and its replacement launched")
    assert found is not None
    return found


def boot(ground: Ground, claim: Json) -> None:
    """The claim's instance boots now."""
    identity = claim["status"]["providerID"].rsplit("/", 1)[-1]
    ground.cloud.control("PATCH", f"instances/{identity}", {"joinsIn": 0})


async def gone(ground: Ground, claim: Json) -> bool:
    return await ground.claim(claim["metadata"]["name"]) is None
