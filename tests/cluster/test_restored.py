"""An API server that forgot an hour, and a Temporal server that answers few requests: the work goes on.

Real servers. The worker lives through both; it knows versions and objects that the restored API server does not.
"""

import asyncio
from functools import partial

import pytest

from testbed.up import NODE_CLASS
from tests.cluster.days.proxies import proxies_before
from tests.cluster.system.backups import back_up_etcd, restore_etcd
from tests.cluster.system.scenes import gone, settle
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

FEW = dict.fromkeys(("frontend.namespaceRPS", "frontend.namespaceRPS.visibility", "frontend.globalNamespaceRPS"), 10)


async def test_after_a_restore_from_an_older_backup_a_worker_that_knows_more_goes_on(ground: Ground) -> None:
    [old] = await settle(ground, 1)
    await back_up_etcd(ground)
    await ground.scale(2)  # forgotten: this pod, its claim and its node; versions that the worker waits to see
    await ground.until(lambda: ground.settled(2), 120, "the second pod runs")
    assert len(await ground.live()) == 2

    await restore_etcd(ground)
    assert [c["metadata"]["name"] for c in await ground.claims()] == [old["metadata"]["name"]]
    await ground.apply(NODE_CLASS)
    await ground.scale(3)  # people go on
    await ground.until(lambda: ground.settled(3), 150, "three pods run, for two of which nodes were launched")
    await ground.until(lambda: _no_orphan(ground), 180, "the instance whose claim was forgotten is terminated")

    await ground.delete("NodeClaim", old["metadata"]["name"])
    await ground.until(lambda: gone(ground, old), 120, "a drain ends")
    await ground.until(lambda: ground.settled(3), 120, "three pods run")
    await ground.assert_one_instance_per_claim()
    await ground.assert_nothing_tainted_or_leaked()


async def test_a_temporal_server_that_answers_ten_requests_a_second_makes_it_slower_and_loses_nothing(
    ground: Ground,
) -> None:
    async with proxies_before(ground) as proxies:
        await ground.limit_temporal(FEW)
        proxies.before(ground)
        try:
            claims = await settle(ground, 3)
            for claim in claims:
                await ground.delete("NodeClaim", claim["metadata"]["name"])
            for claim in claims:
                await ground.until(partial(gone, ground, claim), 240, "the claim is gone")
            await ground.until(lambda: ground.settled(3), 240, "the pods run on new nodes")
            await ground.assert_one_instance_per_claim()
        finally:
            await ground.limit_temporal({})


async def _no_orphan(ground: Ground) -> bool:
    live, claims = await asyncio.gather(ground.live(), ground.claims())
    return len(live) == len(claims)
