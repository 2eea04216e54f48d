"""Which findings of `dovetail doctor` must stop a new version before it is given work.

Those that the new version itself causes: a right, a credential, a definition or a key that it needs and this cluster
does not give it. Faults that existed before it stop none, or no version could fix them: a singleton that hangs, a pool
whose launches were stopped, a NodeClass that is not ready.
"""

import asyncio
from typing import Final

from temporalio.client import Client

from dovetail.answers.doctor.doctor import doctor_of_worker
from dovetail.answers.doctor.identity import NAME as IDENTITY
from dovetail.answers.doctor.preflight import RIGHTS, cloud_rights_check
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

STOPPING: Final = frozenset(
    {
        *("Temporal server", "search attributes", "payloads", IDENTITY),
        *("API server", "clock", "alone", "rights", "custom resources", "view", "watches"),
        *("instances", "cloud", RIGHTS),
    }
)


async def stopping(settings: Settings, world: World, client: Client | None) -> tuple[str, ...]:
    """What must stop this worker's version, each with what to do."""
    answer, rights = await asyncio.gather(doctor_of_worker(settings, world, client), cloud_rights_check(world))
    return tuple(
        f"{check.name}: {check.found} ({check.advice})"
        for check in (*answer.checks, rights)
        if check.verdict == "fails" and check.name in STOPPING
    )
