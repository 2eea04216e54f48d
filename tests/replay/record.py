"""Record histories: python -m tests.replay.record SCENARIO, or `make record VERSION=0.2.0`.

`branches` plays the tests of the workflows and keeps what they started under the name of --version (see recording.py).
The other scenarios record real runs.

Scenarios: `killed` (a whole life, the worker killed three times), `cancelled` (drift, replacement, cancel), `released`
(a node whose claim was stripped), and `running`, which records what ran under another server, such as that of `make
up`: --address and --cluster say which. One history of each workflow type is kept under
tests/replay/histories/<type>/<scenario>.json; a file that exists is never overwritten, because old histories must go on
replaying: give the scenario a new name with --as.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest
from temporalio.client import Client

from dovetail.messages.workflow_ids import node_owner_id
from dovetail.model import names
from dovetail.workflows.converter import DATA_CONVERTER
from tests.faults.catalogue import LIVES
from tests.faults.lives import live
from tests.replay.recorded import HISTORIES, anonymous
from tests.system.beside import a_disruption_that_waits, a_settled_node
from tests.system.histories import executions
from worlds.stage.running import own_stage
from worlds.stage.stage import Stage

# The tests whose workflows and steps are the product's; of those in which every step fails in every way, one way.
BRANCHES = (
    *[
        f"tests/workflows/test_{name}.py"
        for name in ("claim_owner", "disrupt_nodes", "release_node", "scheduler", "gate")
    ],
    *[f"tests/workflows/test_{name}.py" for name in ("caretaker", "interruption_answers", "supervision")],
    *("-k", "not whichever_of_its_steps or Refused"),
)


async def play(stage: Stage, scenario: str) -> None:
    if scenario == "killed":
        await live(stage, LIVES["killed"])
        return
    if scenario == "released":
        await a_claimless_node_leaves(stage)
        return
    claim = await a_disruption_that_waits(stage)
    owner = await stage.workflow(claim["metadata"]["annotations"][names.OWNER])
    await owner.execute_update("cancel_disruption", "recorded")
    await owner.result()


async def a_claimless_node_leaves(stage: Stage) -> None:
    """Its claim goes with its finalizers stripped, then the node is deleted by hand."""
    await a_settled_node(stage)
    await stage.stop_workers()
    [claim] = stage.claims()
    node = claim["status"]["nodeName"]
    stage.world.patch("NodeClaim", claim["metadata"]["name"], {"metadata": {"finalizers": []}})
    stage.world.delete("NodeClaim", claim["metadata"]["name"])
    stage.world.delete("Node", node)
    stage.start_worker()
    await stage.until(lambda: stage.world.get("Node", node) is None, 90, "the node is gone")
    await (await stage.workflow(node_owner_id(stage.cluster, node))).result()


async def keep(client: Client, cluster: str, name: str) -> None:
    """One history of each type: the longest that ended, else the longest."""
    found = [
        (e.close_time is not None, e.history_length, e.workflow_type, e.id, e.run_id)
        for e in await executions(client, cluster)
    ]
    for _, _, kind, identity, run_id in sorted(found):
        history = await client.get_workflow_handle(identity, run_id=run_id).fetch_history()
        file = HISTORIES / kind / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".draft").write_text(anonymous(history))
    for draft in HISTORIES.glob(f"*/{name}.draft"):
        target = draft.with_suffix(".json")
        if target.exists():
            draft.unlink()
            print(f"kept as it was: {target}")
        else:
            draft.replace(target)
            print(f"recorded: {target}")


async def record(scenario: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stage = await own_stage(Path(folder), "recorded")
        try:
            await play(stage, scenario)
            await keep(await stage.client(), stage.cluster, name)
        finally:
            await stage.close()


async def record_running(address: str, cluster: str, name: str) -> None:
    await keep(await Client.connect(address, data_converter=DATA_CONVERTER), cluster, name)


def record_branches(version: str) -> NoReturn:
    """In this process; it leaves with pytest's code, and with os._exit as tests.run does."""
    code = pytest.main(["-p", "tests.replay.recording", "--record", version, "-s", "--no-header", *BRANCHES])
    sys.stdout.flush()
    os._exit(int(code))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.replay.record")
    parser.add_argument("scenario", choices=("branches", "killed", "cancelled", "released", "running"))
    parser.add_argument("--version", help="branches: the version whose workflows are recorded")
    parser.add_argument("--as", dest="name", help="the name of the files; the scenario's where it is left out")
    parser.add_argument("--address", default="127.0.0.1:7233", help="running: Temporal's address")
    parser.add_argument("--cluster", default="dovetail", help="running: the cluster's name")
    given = parser.parse_args()
    if given.scenario == "branches":
        record_branches(given.version or parser.error("branches: --version is missing"))
    name = given.name or given.scenario
    running = given.scenario == "running"
    asyncio.run(record_running(given.address, given.cluster, name) if running else record(given.scenario, name))


if __name__ == "__main__":
    main()
