"""How soon others have what a worker with nothing to do held: `python -m acceptance.bench.worker.going [times]`.

A figure for each play, with real processes, a development server of Temporal and the simulated cloud: from SIGTERM
until the process is gone; from `kill -9` with another worker beside until a pod that comes then has its claim; the same
where the other worker is killed, which held no wait, and where the first is frozen, as by a lost machine; from the kill
until a claim that is deleted then has its termination. A figure of a machine that does other things means little.
"""

import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from dovetail.messages.workflow_ids import claim_owner_id
from worlds.stage.idle_workers import LOADED_SECONDS, held_by, idle_pair, start, until
from worlds.stage.running import own_stage
from worlds.stage.stage import Stage, deployment


async def stopped(stage: Stage) -> float:
    """SIGTERM to gone."""
    worker = start(stage)
    await until(held_by(worker), stage, "it holds all waits")
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    await asyncio.to_thread(worker.wait, LOADED_SECONDS)
    return time.monotonic() - began


async def pod_after_kill(stage: Stage) -> float:
    """Kill to claim."""
    first, _ = await idle_pair(stage)
    stage.kill(first)
    return await claim_of_new_pod(stage)


async def pod_after_other_kill(stage: Stage) -> float:
    """Kill of the worker that holds no wait to claim."""
    _, second = await idle_pair(stage)
    stage.kill(second)
    return await claim_of_new_pod(stage)


async def pod_after_freeze(stage: Stage) -> float:
    """Freeze to claim: the connections stay open, as where the machine is gone."""
    first, _ = await idle_pair(stage)
    first.send_signal(signal.SIGSTOP)
    try:
        return await claim_of_new_pod(stage)
    finally:
        first.send_signal(signal.SIGCONT)


async def claim_of_new_pod(stage: Stage) -> float:
    """Until a pod that comes now has its claim."""
    began = time.monotonic()
    stage.world.apply(deployment(1, "more"))
    await stage.until(lambda: len(stage.claims()) == 2, LOADED_SECONDS, "the pod has a claim")
    return time.monotonic() - began


async def deletion_after_kill(stage: Stage) -> float:
    """Kill to termination."""
    first, _ = await idle_pair(stage)
    [claim] = stage.claims()
    name = claim["metadata"]["name"]
    handle = (await stage.client()).get_workflow_handle(claim_owner_id(stage.cluster, name))
    stage.kill(first)
    began = time.monotonic()
    stage.world.delete("NodeClaim", name)
    while (await handle.describe()).workflow_type != "TerminateNode":
        assert time.monotonic() - began < LOADED_SECONDS, "no termination begins"
        await asyncio.sleep(0.1)
    return time.monotonic() - began


PLAYS = {
    "SIGTERM to gone": stopped,
    "kill -9 to the claim of a new pod": pod_after_kill,
    "kill -9 of the other worker to the claim of a new pod": pod_after_other_kill,
    "freeze to the claim of a new pod": pod_after_freeze,
    "kill -9 to the termination of a deleted claim": deletion_after_kill,
}


async def main(times: int) -> None:
    """Print each figure of each play."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(times):
            for words, play in PLAYS.items():
                stage = await own_stage(Path(folder) / f"{number}-{play.__name__}", f"going-{play.__name__}")
                try:
                    print(f"{words}: {await play(stage):.1f} s", flush=True)
                finally:
                    await stage.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
