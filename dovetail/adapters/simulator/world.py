"""A simulated world from outside: what tests, the demo and a person at a terminal create, change and look at.

Everything here is synchronous and takes a millisecond. `apply` is kubectl's: it creates or merges, the status included.
Tests use nothing but this: tables and columns may change.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

from dovetail.adapters.simulator import faults, ledger
from dovetail.adapters.simulator.api_server import objects as table
from dovetail.adapters.simulator.api_server.admission import NAMESPACED
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.cloud import instances as rows
from dovetail.adapters.simulator.cloud.catalogue import write_catalogue
from dovetail.adapters.simulator.cloud.default_types import CapacityPool
from dovetail.adapters.simulator.cloud.instances import InstanceRow, LaunchCall, Launched
from dovetail.adapters.simulator.faults import Moment
from dovetail.adapters.simulator.ledger import Entry
from dovetail.adapters.simulator.play.instances import SILENT
from dovetail.adapters.simulator.play.player import Player
from dovetail.adapters.simulator.settings import WorldSettings, read_settings, write_settings
from dovetail.model.json import Json
from dovetail.model.time import format_time

T = TypeVar("T")

EVERY = "*"

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
    def create(
        cls, file: Path, settings: WorldSettings | None = None, clock: Callable[[], float] = time.time
    ) -> "SimulatedWorld":
        """A new world in a new file."""
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
    def open(cls, file: Path, clock: Callable[[], float] = time.time) -> "SimulatedWorld":
        """A world that exists."""
        if not file.exists():
            raise FileNotFoundError(f"there is no world in {file}")
        return cls(file, clock=clock)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # Objects

    def apply(self, body: Json) -> Json:
        """Create an object, or merge it into the one of its name; its status too."""
        return self._write(lambda cluster: _applied(cluster, body))

    def put_raw(self, body: Json) -> Json:
        """Store an object unchecked: for tests of objects that cannot be read."""
        return self._write(lambda cluster: table.put(cluster.connection, body))

    def put_all(self, bodies: Iterable[Json]) -> int:
        """Store objects unchecked in one transaction, for clusters of any size; how many there were."""
        return self._write(lambda cluster: sum(1 for body in bodies if table.put(cluster.connection, body)))

    def patch(self, kind: str, key: str, patch: Json, subresource: str = "") -> Json:
        """A merge patch."""
        return self._write(lambda cluster: cluster.patch(kind, key_in(kind, key), patch, subresource))

    def delete(self, kind: str, key: str, grace: int | None = None) -> None:
        """Delete an object, as kubectl does."""
        self._write(lambda cluster: cluster.delete(kind, key_in(kind, key), grace=grace))

    def get(self, kind: str, key: str) -> Json | None:
        """One object."""
        return self._read(lambda cluster: cluster.read(kind, key_in(kind, key)))

    def objects(self, kind: str) -> list[Json]:
        """All objects of a kind."""
        return self._read(lambda cluster: list(table.every(cluster.connection, kind)))

    def scale(self, deployment: str, replicas: int) -> Json:
        """Set the number of replicas of a Deployment."""
        return self.patch("Deployment", deployment, {"spec": {"replicas": replicas}})

    def silence(self, node: str) -> None:
        """The node's kubelet falls silent for good: Ready turns Unknown, its pods neither start nor stop."""
        self.patch("Node", node, {"metadata": {"annotations": {SILENT: "true"}}})
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        condition = {**unknown, "lastTransitionTime": format_time(self._clock())}
        self.patch("Node", node, {"status": {"conditions": [condition]}}, "status")

    # The cloud

    def declare_catalogue(self, declaration: Mapping[str, Any]) -> None:
        """What this world sells, in place of the default types. To be called before the world is opened."""
        self._write(lambda cluster: write_catalogue(cluster.connection, declaration))

    def add_instance(self, row: InstanceRow) -> InstanceRow:
        """Add an instance as it is described, without a launch."""
        return self._write(lambda cluster: rows.insert(cluster.connection, row))

    def instances(self) -> list[InstanceRow]:
        """All instances that there ever were, oldest first."""
        return self._read(lambda cluster: rows.every(cluster.connection))

    def live_instances(self) -> list[InstanceRow]:
        """Those that are not gone."""
        return self._read(lambda cluster: rows.unended(cluster.connection))

    def launch(self, call: LaunchCall) -> Launched:
        """Launch an instance without the product: another cluster's, or one whose launch was not recorded."""
        return self._write(lambda cluster: rows.launch(cluster.connection, call, cluster.now))

    def terminate_instance(self, provider_id: str) -> None:
        """Terminate an instance by hand."""
        self._write(lambda cluster: rows.terminate(cluster.connection, provider_id, cluster.now))

    def sell_out(self, instance_type: str = EVERY, zone: str = EVERY, capacity_type: str = EVERY) -> None:
        """The cloud has no capacity for these offerings from now on."""
        pool = CapacityPool(instance_type, zone, capacity_type)
        self._write(lambda cluster: rows.sell_out(cluster.connection, pool))

    def end_sell_outs(self) -> None:
        """The cloud has capacity for everything again; shortages that were noticed last until they are forgotten."""
        self._write(lambda cluster: rows.end_sell_outs(cluster.connection))

    def forget_shortages(self) -> None:
        """What launches have learned of sold-out offerings is forgotten before its time."""
        self._write(lambda cluster: cluster.connection.execute("DELETE FROM shortages"))

    def never_join(self, count: int = -1) -> None:
        """The next launches (-1: all of them) boot, and their kubelets never register. 0 ends it."""
        self.set(never_join=count)

    def set_boot_delay(self, seconds: float) -> None:
        """How long instances that are launched from now on take to boot."""
        self.set(boot=seconds)

    def fail(self, operation: str, moment: Moment, failure: str = "Unreachable", times: int = 1) -> None:
        """Let the next calls of an operation fail: cloud:launch, cloud:terminate, `cluster:patch NodeClaim`, ..."""
        self._write(lambda cluster: faults.order(cluster.connection, operation, moment, failure, times))

    def mend(self) -> None:
        """No call fails any more on order."""
        self._write(lambda cluster: faults.forget(cluster.connection))

    def hasten(self, claim: str = EVERY) -> None:
        """What a claim's instance would take its time for happens now: it boots and joins, also where it was never to;
        one that is terminating ends."""
        self._write(lambda cluster: rows.hasten(cluster.connection, claim, cluster.now))

    # The world

    def settings(self) -> WorldSettings:
        """The settings as they are."""
        return self._read(lambda cluster: read_settings(cluster.connection))

    def set(self, **changes: float | int | str) -> None:
        """Change settings."""

        def step(cluster: Cluster) -> None:
            changed = dataclasses.replace(read_settings(cluster.connection), **changes)  # type: ignore[arg-type]
            write_settings(cluster.connection, changed)

        self._write(step)

    def ledger(self, since: int = 0) -> list[Entry]:
        """The entries of the ledger with an id above `since`."""
        return self._read(lambda cluster: ledger.entries(cluster.connection, since))

    def player(self) -> Player:
        """A player to be moved by hand."""
        return Player(self._store, self._clock)

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Let the world move by itself, on a thread of its own, until the end of the block."""
        stop = Event()
        failures: list[BaseException] = []
        thread = Thread(target=_play, args=(self.player(), stop, failures), name="embedded-player", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if failures:
            raise failures[0]

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


def _play(player: Player, stop: Event, failures: list[BaseException]) -> None:
    try:
        player.run(stop)
    except BaseException as error:
        failures.append(error)
        raise
