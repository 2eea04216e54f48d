"""What befalls the servers: an API server that refuses for minutes, a slow admission webhook, a Temporal that restarts.

An etcd that goes back to an older backup is played in tests/cluster/test_restored.py, and in random days.
"""

import asyncio
import signal
from typing import Final

import pytest

from testbed.faults import Fault
from tests.cluster.days.proxies import proxies_before
from tests.storm.life import storm
from tests.storm.slow_webhook import slow_webhook
from worlds.cluster.ground import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

REFUSING_SECONDS: Final = 150.0
WEBHOOK_SECONDS: Final = 240.0
RESTARTS: Final = 8


async def test_an_api_server_refuses_most_requests_and_forgets_where_watches_were(ground: Ground) -> None:
    """Four of five requests are too many for minutes; then every watch is too old for minutes, lists are not."""
    too_many = Fault(share=0.8, status=429, retry_after=1)
    too_old = Fault(path="watch=(true|True|1)", status=410)
    async with proxies_before(ground) as proxies:
        async with storm(ground, seed=280, patience=REFUSING_SECONDS + 240):
            with proxies.api.sick(too_many):
                await asyncio.sleep(REFUSING_SECONDS)
            with proxies.api.sick(too_old):
                await asyncio.sleep(REFUSING_SECONDS)
        met = [fault for fault, _, _ in proxies.api.done]
        print(f"  {met.count(too_many)} requests were too many, {met.count(too_old)} watches too old")
        assert set(met) == {too_many, too_old}


async def test_an_admission_webhook_takes_ten_seconds(ground: Ground) -> None:
    """For each write of a NodeClaim and each eviction, whoever asks."""
    async with storm(ground, seed=281, patience=WEBHOOK_SECONDS + 240):
        async with slow_webhook(ground, seconds=10.0) as asked:
            await asyncio.sleep(WEBHOOK_SECONDS)
        print(f"  the webhook was asked {len(asked)} times: {sorted(set(asked))}")
        assert {"nodeclaims", "pods"} <= set(asked)


async def test_temporal_restarts_each_minute(ground: Ground) -> None:
    """Killed with -9, back at its address with its database after a moment or after ten seconds."""
    ground.ensure_workers(2)
    async with storm(ground, seed=282, patience=300):
        for number in range(RESTARTS):
            await asyncio.sleep(60.0)
            ground.signal_temporal(signal.SIGKILL)
            await asyncio.sleep(10.0 * (number % 2))
            await ground.start_temporal_again()
