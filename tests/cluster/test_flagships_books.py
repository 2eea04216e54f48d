"""What is promised of the books: savings and bill are the cloud's own, to the cent. A wave of one scene: an empty node
of another NodePool goes by the same command, and what the two were foretold to save is divided between them evenly."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import pytest

from dovetail.model.values.json import Json
from tests.cluster.flagships.corner import Corner
from tests.cluster.flagships.wave import scene
from worlds.cluster.costs import many_types, start_worker
from worlds.cluster.ground import Ground

pytestmark = pytest.mark.cluster

EMPTY: Final[Json] = {"budgets": [{"nodes": "100%"}], "consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"}
DEAR: Final = "r5a.4xlarge"
DOLLARS: Final = 9.0  # an hour of it: a quarter of a cent a second
CENT: Final = 0.01


@asynccontextmanager
async def setting(ground: Ground) -> AsyncIterator[None]:
    """One type is dear; afterwards the cloud sells what it sold before."""
    before = many_types(ground)
    ground.world({"prices": {DEAR: DOLLARS}})
    start_worker(ground, BATCH_MAX_DURATION="5s")  # nominations last half as long
    try:
        yield
    finally:
        ground.world(before)
        ground.ensure_workers(0)


@scene
async def test_savings_are_the_cloud_s_own_to_the_cent(corner: Corner) -> None:
    """A node for nine dollars an hour is empty and goes. What is saved since, and what was paid before, by the prices
    and moments of the cloud."""
    began = time.time()
    await corner.apply(corner.pool(types=(DEAR,), disruption=EMPTY), corner.workload(1))
    await corner.settle(1, 1)
    await corner.kubectl("scale", "deployment", "web", "-n", corner.name, "--replicas=0")

    async def ended() -> list[Json]:
        found = await corner.instances()
        return found if all(each["state"] == "terminated" for each in found) else []

    [instance] = await corner.until(ended, 120, "the empty node is gone")
    await corner.until(partial(passed, instance["goneAt"] + 40.0), 60, "ten cents are saved")

    cloud = corner.ground.cloud.control("GET", "prices")[DEAR]["on-demand"][instance["zone"]]
    paid = cloud * (instance["goneAt"] - instance["launchedAt"]) / 3600

    asked = time.time()
    answer = await corner.document("savings", "--since", f"{time.time() - began + 60:.0f}s")

    [said] = [each for each in answer["pools"] if each["pool"] == corner.name]
    assert (said["moves"], said["undone"], said["predicted"], cloud) == (1, 0, DOLLARS, DOLLARS), said
    least, most = (cloud * (moment - instance["goneAt"]) / 3600 for moment in (asked, time.time()))
    assert least > 10 * CENT and least - CENT < said["saved"] < most + CENT, (least, said, most)
    assert abs(said["bill"] - paid) < CENT, (paid, said)


async def passed(moment: float) -> bool:
    return time.time() >= moment
