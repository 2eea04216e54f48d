"""Starts all of a Temporal in order, and knows where it is; what runs is written down before anything is waited for."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from temporalio.api.workflowservice.v1 import ListNamespacesRequest
from temporalio.client import Client
from temporalio.service import RPCError, TLSConfig

from dovetail.cli.demo.temporal_server import free_ports, temporal_binary
from dovetail.model.values.json import Json
from dovetail.workflows.converter import DATA_CONVERTER
from testbed.plane.processes import ProcessIdentity, kill_process, stop_process
from testbed.plane.unavailable import TestbedUnavailable
from testbed.temporal.postgres import USER, Postgres
from testbed.temporal.programs import SCHEMA_TOOL, find_postgres, find_programs
from testbed.temporal.services import HOST, SERVICES, STORES, Services

STATE: Final = "temporal.json"
READY_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 20.0
_SCHEMAS: Final = {"temporal": "temporal", "temporal_visibility": "visibility"}
Say = Callable[[str], None]


@dataclass(kw_only=True)
class RealTemporal:
    """One that runs, and its parts by name."""

    folder: Path
    services: Services
    processes: dict[str, ProcessIdentity]
    ui: str = ""  # it has none

    @property
    def address(self) -> str:
        return self.services.frontend

    @property
    def binary(self) -> Path:
        """Of the command `temporal`."""
        return temporal_binary()

    @property
    def environment(self) -> dict[str, str]:
        """By which a worker, our command line and `temporal` find it."""
        keys = self.services.folder
        return {
            "TEMPORAL_ADDRESS": self.address,
            "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(self.services.authority),
            "TEMPORAL_TLS_CLIENT_CERT_PATH": str(keys / "client.crt"),
            "TEMPORAL_TLS_CLIENT_KEY_PATH": str(keys / "client.key"),
        }

    async def client(self) -> Client:
        keys = self.services.folder
        tls = TLSConfig(
            server_root_ca_cert=self.services.authority.read_bytes(),
            client_cert=(keys / "client.crt").read_bytes(),
            client_private_key=(keys / "client.key").read_bytes(),
        )
        return await Client.connect(self.address, tls=tls, data_converter=DATA_CONVERTER)

    def start(self, name: str) -> None:
        """That service, for the first time or again."""
        self.processes[name] = self.services.start(name)
        self._write()

    async def kill(self, *names: str) -> None:
        """Kill -9."""
        await asyncio.gather(*[kill_process(self.processes[name]) for name in names])

    def stop(self) -> None:
        """All of it, for good."""
        asyncio.run(stop_temporal(self.folder))

    def report(self) -> Json:
        """The one JSON line."""
        return {
            "folder": str(self.folder),
            "temporal_address": self.address,
            "temporal_binary": str(self.binary),
            "environment": self.environment,
            "postgres": f"{HOST}:{self.services.postgres.port}",
            "pids": {name: process.pid for name, process in self.processes.items()},
            "metrics": {name: f"http://{HOST}:{ports[2]}/metrics" for name, ports in self.services.ports.items()},
        }

    def _write(self) -> None:
        postgres = {name: str(value) for name, value in asdict(self.services.postgres).items()}
        processes = {name: asdict(process) for name, process in self.processes.items()}
        state = self.folder / STATE
        state.touch(mode=0o600)  # it holds the database's password
        state.write_text(json.dumps({"postgres": postgres, "processes": processes}) + "\n")


async def start_temporal(folder: Path, say: Say) -> RealTemporal:
    """All of it, once it answers; what has been started is stopped again where a part does not come up."""
    folder.mkdir(parents=True, exist_ok=True)
    await stop_temporal(folder)
    programs, database = find_programs(say), find_postgres()
    first, *ports = free_ports(1 + 3 * len(SERVICES))
    postgres = await asyncio.to_thread(Postgres.create, database, first, secrets.token_hex(16))
    triples = {name: (ports[3 * i], ports[3 * i + 1], ports[3 * i + 2]) for i, name in enumerate(SERVICES)}
    services = Services(folder=folder / "temporal", programs=programs, postgres=postgres, ports=triples)
    made = RealTemporal(folder=folder, services=services, processes={})
    made._write()
    try:
        await asyncio.to_thread(postgres.start)
        await asyncio.to_thread(_make_schema, services)
        services.prepare()
        for name in SERVICES:
            made.start(name)
            await _listening(made, name)
        await _answering(made)
        await asyncio.to_thread(_set_up, made)
    except BaseException:
        await stop_temporal(folder)
        raise
    return made


async def stop_temporal(folder: Path) -> bool:
    """End what runs there, and take its database away. Whether there was anything."""
    state = folder / STATE
    if not state.exists():
        return False
    known = json.loads(state.read_text())
    processes = [ProcessIdentity(**process) for process in known["processes"].values()]
    await asyncio.gather(*[stop_process(process, _STOP_SECONDS) for process in processes])
    found = known["postgres"]
    folders = {name: Path(found[name]) for name in ("programs", "folder")}
    postgres = Postgres(**folders, port=int(found["port"]), password=found["password"])
    if postgres.folder.exists():
        await asyncio.to_thread(postgres.remove)
    state.unlink()
    return True


def _set_up(made: RealTemporal) -> None:
    """The namespace and the search attributes, by the command that people type."""
    command = [sys.executable, "-m", "dovetail.cli.main", "set-up-temporal"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    environment = {**kept, **made.environment, "TEMPORAL_NAMESPACE": "default"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedUnavailable(f"dovetail set-up-temporal: {done.stderr.strip() or done.stdout.strip()}")


def _make_schema(services: Services) -> None:
    for database in STORES.values():
        _tool(services, database, "create")
        _tool(services, database, "setup-schema", "-v", "0.0")
        _tool(services, database, "update-schema", "--schema-name", f"postgresql/v12/{_SCHEMAS[database]}")


def _tool(services: Services, database: str, *words: str) -> None:
    postgres = services.postgres
    where = {"--plugin": "postgres12", "--ep": HOST, "--port": str(postgres.port), "--user": USER, "--db": database}
    options = [word for pair in where.items() for word in pair]
    command = [str(services.programs / SCHEMA_TOOL), *options, "--pw", postgres.password, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines()
        raise TestbedUnavailable(f"the schema of {database}, {words[0]}: {said[-1] if said else done.returncode}")


async def _listening(made: RealTemporal, name: str) -> None:
    """Its line in the database stands by then."""

    async def listens() -> str:
        try:
            _, writer = await asyncio.open_connection(HOST, made.services.ports[name][0])
        except OSError as error:
            return str(error)
        writer.close()
        return ""

    await _until(made, (name,), listens)


async def _answering(made: RealTemporal) -> None:
    async def answers() -> str:
        try:
            client = await made.client()
            await client.service_client.workflow_service.list_namespaces(ListNamespacesRequest())
        except (RPCError, RuntimeError) as error:
            return str(error)
        return ""

    await _until(made, tuple(SERVICES), answers)


async def _until(made: RealTemporal, names: Iterable[str], why_not: Callable[[], Awaitable[str]]) -> None:
    deadline = asyncio.get_running_loop().time() + READY_SECONDS
    while why := await why_not():
        if gone := [name for name in names if not made.processes[name].is_running()]:
            raise TestbedUnavailable(f"Temporal's {', '.join(gone)} ended; see {made.services.folder}")
        if asyncio.get_running_loop().time() > deadline:
            raise TestbedUnavailable(f"Temporal's {', '.join(names)} not ready: {why}; see {made.services.folder}")
        await asyncio.sleep(0.2)
