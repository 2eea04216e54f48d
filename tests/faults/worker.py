"""The worker as `dovetail worker` starts it, with faults on order: python -m tests.faults.worker worker --cluster ….

Nothing of the product is replaced but three seams of worker/run.py: the client carries the killer's interceptor, the
cloud has a point behind each launch, and the sandbox lets the tests' package through.
"""

import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from temporalio.client import Client
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from dovetail.cli.main import run
from dovetail.connection import temporal
from dovetail.settings.settings import Settings
from dovetail.wiring import world as wiring
from dovetail.wiring.world import World
from dovetail.worker.sandbox import OURS
from tests.faults.killer import Faults, Killer, KillingCloud, install
from worlds.fault_orders import VARIABLE, Orders

ROOMS = ("adapters", "settings", "connection", "wiring", "answers", "worker", "cli")


def main() -> None:
    faults = Faults(Orders(Path(os.environ[VARIABLE])), os.environ.get(f"{VARIABLE}_MODE", ""))
    install(faults)

    async def connect(settings: Settings) -> Client:
        config = (await temporal.connect(settings)).config()
        config["interceptors"] = [Killer()]
        return Client(**config)

    async def open_world(settings: Settings) -> World:
        world = await wiring.open_world(settings)
        return replace(world, cloud=KillingCloud(world.cloud, faults))

    def runner() -> SandboxedWorkflowRunner:
        return SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules(
                *OURS, "tests", "worlds", *(f"dovetail.{room}" for room in ROOMS)
            )
        )

    with (
        patch("dovetail.worker.run.connect", connect),
        patch("dovetail.worker.absence.opening.open_world", open_world),
        patch("dovetail.worker.task_queues.runner", runner),
    ):
        run()


if __name__ == "__main__":
    main()
