"""A simulated world from outside: what the demo and a person at a terminal create, change and look at.

Everything here is synchronous and takes a millisecond. `apply` is kubectl's: it creates or merges, the status included.
"""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

from dovetail.adapters.simulator import faults
from dovetail.adapters.simulator.api_server import objects as table
from dovetail.adapters.simulator.api_server.admission import NAMESPACED
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.cloud import instances as rows
from dovetail.adapters.simulator.cloud.instances import InstanceRow, LaunchCall, Launched
from dovetail.adapters.simulator.faults import Moment
from dovetail.adapters.simulator.ledger import Entry
from dovetail.adapters.simulator.play.player import Player
from dovetail.adapters.simulator.settings import WorldSettings, read_settings, write_settings
from dovetail.model.values.json import Json

T = TypeVar("T")

# There from the start, as on any cluster.
NAMESPACES = ("default", "kube-system")


class SimulatedWorld:
    """One file, and everything that can be done to it from outside."""

    def __init__(self, file: Path, actor: str = "kubectl", clock: Callable[[], float] = time.time) -> None:
        self.file = file
        self._store = Store(file)
        self._actor = actor
        self._clock = clock

    @classmethod
    def create(cls, file: Path, settings: WorldSettings | None = None, clock: Callable[[], float] = time.time) -> Self:
        if file.exists():
            raise FileExistsError(f"there is a world in {file} already")
        world = cls(file, clock=clock)
        world._store.initialise()
        world._write(lambda cluster: write_settings(cluster.connection, settings or WorldSettings()))
        for name in NAMESPACES:
            labels = {"kubernetes.io/metadata.name": name}
            world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        return world

    @classmethod
    def open(cls, file: Path, clock: Callable[[], float] = time.time) -> Self:
        if not file.exists():
            raise FileNotFoundError(f"there is no world in {file}")
        return cls(file, clock=clock)

    def close(self) -> None:
        self._store.close()

    # Objects

    def apply(self, body: Json) -> Json:
        """Create an object, or merge it into the one of its name; its status too."""
        return self._write(lambda cluster: _applied(cluster, body))

    def patch(self, kind: str, key: str, patch: Json, subresource: str = "") -> Json:
        return self._write(lambda cluster: cluster.patch(kind, key_in(kind, key), patch, subresource))

    def delete(self, kind: str, key: str, grace: int | None = None) -> None:
        """Delete an object, as kubectl does."""
        self._write(lambda cluster: cluster.delete(kind, key_in(kind, key), grace=grace))

    def get(self, kind: str, key: str) -> Json | None:
        return self._read(lambda cluster: cluster.read(kind, key_in(kind, key)))

    def objects(self, kind: str) -> list[Json]:
        return self._read(lambda cluster: list(table.every(cluster.connection, kind)))

    def scale(self, deployment: str, replicas: int) -> Json:
        return self.patch("Deployment", deployment, {"spec": {"replicas": replicas}})

    def ledger(self, since: int = 0) -> list[Entry]:
        """The entries of the ledger with an id above `since`, oldest first."""
        statement = "SELECT * FROM ledger WHERE id > ? ORDER BY id"
        return self._read(
            lambda cluster: [Entry(**dict(row)) for row in cluster.connection.execute(statement, [since])]
        )

    # The cloud

    def instances(self) -> list[InstanceRow]:
        """All instances that ever existed, oldest first."""
        return self._read(lambda cluster: rows.every(cluster.connection))

    def live_instances(self) -> list[InstanceRow]:
        return self._read(lambda cluster: rows.unended(cluster.connection))

    def launch(self, call: LaunchCall) -> Launched:
        """Launch an instance without the product: another cluster's, or one whose launch was not recorded."""
        return self._write(lambda cluster: rows.launch(cluster.connection, call, cluster.now))

    def terminate_instance(self, provider_id: str) -> None:
        """Terminate an instance by hand."""
        self._write(lambda cluster: rows.terminate(cluster.connection, provider_id, cluster.now))

    def never_join(self, count: int = -1) -> None:
        """The next launches (-1: all of them) boot, but their kubelets never register. 0 ends it."""
        self.set(never_join=count)

    def set_boot_delay(self, seconds: float) -> None:
        """How long instances that are launched from now on take to boot."""
        self.set(boot=seconds)

    def fail(self, operation: str, moment: Moment, failure: str = "Unreachable", times: int = 1) -> None:
        """Let the next calls of an operation fail: cloud:launch, cloud:terminate, `cluster:patch NodeClaim`, ..."""
        self._write(lambda cluster: faults.order(cluster.connection, operation, moment, failure, times))

    # The world

    def settings(self) -> WorldSettings:
        return self._read(lambda cluster: read_settings(cluster.connection))

    def set(self, **changes: float | int | str) -> None:
        def step(cluster: Cluster) -> None:
            changed = dataclasses.replace(read_settings(cluster.connection), **changes)  # type: ignore[arg-type]
            write_settings(cluster.connection, changed)

        self._write(step)

    def player(self) -> Player:
        """A player to be moved by hand."""
        return Player(self._store, self._clock)

    def _write(self, step: Callable[[Cluster], T]) -> T:
        with self._store.writing() as connection:
            return step(Cluster(connection, self._actor, self._clock()))

    def _read(self, step: Callable[[Cluster], T]) -> T:
        with self._store.reading() as connection:
            return step(Cluster(connection, self._actor, self._clock()))


def key_in(kind: str, key: str) -> str:
    """A key; the namespace `default` may be left out."""
    return f"default/{key}" if kind in NAMESPACED and "/" not in key else key


def _applied(cluster: Cluster, body: Json) -> Json:
    kind = body["kind"]
    key = key_in(kind, table.key_of(body))
    found = cluster.read(kind, key)
    status = {"status": body["status"]} if "status" in body else {}
    if found is None:
        found = cluster.create(body)
        key = table.key_of(found)
    else:
        found = cluster.patch(kind, key, {name: value for name, value in body.items() if name != "status"})
    return cluster.patch(kind, key, status, "status") if status else found
