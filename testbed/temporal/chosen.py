"""Which Temporal the tests run on: the development server, or the real one where the variable says so."""

import os
from pathlib import Path
from typing import Final

from dovetail.cli.demo.temporal_server import TemporalServer
from dovetail.cli.demo.temporal_server import start_temporal as start_development_server
from testbed.plane.unavailable import TestbedUnavailable
from testbed.temporal.server import RealTemporal, Say, start_temporal

VARIABLE: Final = "DOVETAIL_TESTBED_TEMPORAL"
POSTGRES: Final = "postgres"
AnyTemporal = TemporalServer | RealTemporal


def environment_of(temporal: AnyTemporal) -> dict[str, str]:
    """By which a worker and the command line find it."""
    if isinstance(temporal, RealTemporal):
        return temporal.environment
    return {"TEMPORAL_ADDRESS": temporal.address}


async def start_chosen(folder: Path, say: Say) -> AnyTemporal:
    """The one that is chosen, once it answers."""
    chosen = os.environ.get(VARIABLE, "")
    if not chosen:
        return await start_development_server(folder)
    if chosen != POSTGRES:
        raise TestbedUnavailable(f"{VARIABLE}: {chosen} is not `{POSTGRES}`")
    return await start_temporal(folder, say)
