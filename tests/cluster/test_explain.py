"""Does `dovetail explain pod` say on real servers why a pod waits, and does what it proposes help?"""

import pytest

from dovetail.model import names
from worlds.cluster.fleets import fleet_pool, workload
from worlds.cluster.ground import Ground

pytestmark = pytest.mark.cluster


async def test_a_pod_that_no_pool_takes_is_explained_and_the_help_helps(ground: Ground) -> None:
    """A zone that the pool leaves out; without it in the pod's way the pod gets its node."""
    zone = {"key": names.ZONE, "operator": "In", "values": ["us-west-2b"]}
    pool = fleet_pool("web")
    pool["spec"]["template"]["spec"]["requirements"].append(zone)
    await ground.apply(pool)
    body = workload("web", "web", 1)
    body["spec"]["template"]["spec"]["nodeSelector"][names.ZONE] = "us-west-2a"
    await ground.apply(body)

    async def explained() -> str:
        pods = [p["metadata"]["name"] for p in await ground.objects("Pod")]
        code, said = await ground.dovetail("explain", "pod", f"default/{pods[0]}") if pods else (1, "")
        # Before the pool is ready there is no other word of it than that it is not there.
        return " ".join(said.split()) if code == 0 and names.ZONE in said and "NodePool web" in said else ""

    said = await ground.until(explained, 60, "the pool and the zone are named")
    assert "us-west-2a" in said, said
    assert not await ground.claims()

    body["spec"]["template"]["spec"]["nodeSelector"][names.ZONE] = "us-west-2b"
    await ground.apply(body)
    await ground.until(lambda: ground.settled(1), 90, "the pod runs in the zone of the pool")
