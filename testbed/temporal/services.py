"""Temporal's services: what each is configured with, and how it is started, killed and started again.

All listen on 127.0.0.1, each on ports of its own; they find each other by what they write into the database. Between
them, and to clients, is TLS that asks for a certificate of the same authority.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail.model.values.json import Json
from testbed.plane.certificates import Authority
from testbed.plane.processes import ProcessIdentity, identify, spawn
from testbed.plane.unavailable import TestbedUnavailable
from testbed.temporal.postgres import USER, Postgres
from testbed.temporal.programs import SERVER

# In the order of their start. The first begins alone: those that begin together on an empty database fall over each
# other's first line of it.
SERVICES: Final = {
    "history": "history",
    "history-2": "history",
    "matching": "matching",
    "frontend": "frontend",
    "worker": "worker",
}
HOST: Final = "127.0.0.1"
STORES: Final = {"default": "temporal", "visibility": "temporal_visibility"}
SHARDS: Final = 4
_CONNECTIONS: Final = 20  # of each process to each store


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Where the files of all services lie, and their ports: of calls, of membership, of metrics."""

    folder: Path
    programs: Path
    postgres: Postgres
    ports: dict[str, tuple[int, int, int]]

    @property
    def frontend(self) -> str:
        return f"{HOST}:{self.ports['frontend'][0]}"

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def prepare(self) -> None:
        """Keys, and a configuration for each."""
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = Authority.create()
        pairs = {"server": authority.peer("temporal", HOST), "client": authority.client("dovetail", ())}
        self.authority.write_bytes(authority.pair.certificate)
        for name, pair in pairs.items():
            (self.folder / f"{name}.crt").write_bytes(pair.certificate)
            (self.folder / f"{name}.key").write_bytes(pair.key)
        (self.folder / "dynamic.yaml").write_text("")
        for name in SERVICES:
            (self.folder / f"{name}.json").write_text(json.dumps(self._configuration(name), indent=1))

    def start(self, name: str) -> ProcessIdentity:
        """A process of that name, which may not have come to anything yet."""
        command = [str(self.programs / SERVER), "--config-file", str(self.folder / f"{name}.json"), "--allow-no-auth"]
        process = spawn([*command, "start", "--service", SERVICES[name]], self.folder / f"{name}.log")
        found = identify(process.pid)
        if found is None:
            raise TestbedUnavailable(f"Temporal's {name} ended at once; see {self.folder / f'{name}.log'}")
        return found

    def _configuration(self, name: str) -> Json:
        calls, members, metrics = self.ports[name]
        others = {SERVICES[other]: ports for other, ports in self.ports.items()}
        rpc = {
            service: {"rpc": {"grpcPort": port, "membershipPort": member, "bindOnIP": HOST}}
            for service, (port, member, _) in {**others, SERVICES[name]: (calls, members, metrics)}.items()
        }
        return {
            "log": {"stdout": True, "level": "warn"},
            "persistence": {
                "numHistoryShards": SHARDS,
                "defaultStore": "default",
                "visibilityStore": "visibility",
                "datastores": {store: self._store(database) for store, database in STORES.items()},
            },
            "global": {
                "membership": {"maxJoinDuration": "30s", "broadcastAddress": HOST},
                "metrics": {"prometheus": {"timerType": "histogram", "listenAddress": f"{HOST}:{metrics}"}},
                "tls": self._tls(),
            },
            "services": rpc,
            "clusterMetadata": {
                "enableGlobalNamespace": False,
                "failoverVersionIncrement": 10,
                "masterClusterName": "active",
                "currentClusterName": "active",
                "clusterInformation": {
                    "active": {
                        "enabled": True,
                        "initialFailoverVersion": 1,
                        "rpcName": "frontend",
                        "rpcAddress": self.frontend,
                    }
                },
            },
            "dcRedirectionPolicy": {"policy": "noop"},
            "publicClient": {"hostPort": self.frontend},
            "dynamicConfigClient": {"filepath": str(self.folder / "dynamic.yaml"), "pollInterval": "10s"},
        }

    def _store(self, database: str) -> Json:
        return {
            "sql": {
                "pluginName": "postgres12",
                "databaseName": database,
                "connectAddr": f"{HOST}:{self.postgres.port}",
                "connectProtocol": "tcp",
                "user": USER,
                "password": self.postgres.password,
                "maxConns": _CONNECTIONS,
                "maxIdleConns": _CONNECTIONS,
                "maxConnLifetime": "1h",
            }
        }

    def _tls(self) -> Json:
        own = {"certFile": str(self.folder / "server.crt"), "keyFile": str(self.folder / "server.key")}
        trusted = {"serverName": HOST, "rootCaFiles": [str(self.authority)]}
        server = {**own, "requireClientAuth": True, "clientCaFiles": [str(self.authority)]}
        both = {"server": server, "client": trusted}
        return {"internode": both, "frontend": both, "systemWorker": {**own, "client": trusted}}
