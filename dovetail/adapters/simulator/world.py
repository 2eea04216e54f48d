"""A world as tests, the demo and a person at a terminal play with it: make it, change it, look at it.

Everything here is synchronous and takes a millisecond. `apply` is kubectl's: it creates or merges, the status included.
The trap avoided: a test that reaches into tables; what is not here is not to be relied upon.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

from dovetail.adapters.simulator import faults, ledger
from dovetail.adapters.simulator.api_server import objects as table
from dovetail.adapters.simulator.api_server.admission import NAMESPACED
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.objects import Body
from dovetail.adapters.simulator.cloud import instances as rows
from dovetail.adapters.simulator.cloud.instances import Bought, Machine, Order
from dovetail.adapters.simulator.cloud.offers import write_shelf
from dovetail.adapters.simulator.faults import Moment
from dovetail.adapters.simulator.ledger import Entry
from dovetail.adapters.simulator.play.machines import SILENT
from dovetail.adapters.simulator.play.player import Player
from dovetail.adapters.simulator.settings import WorldSettings, read_settings, write_settings
from dovetail.adapters.simulator.store import Store
from dovetail.model.time import format_time

T = TypeVar("T")

EVERY = "*"

# There from the start, as on any cluster.
NAMESPACES = ("default", "kube-system")


class EmbeddedWorld:
    """One file, and everything that can be done to it from outside."""

    def __init__(self, file: Path, actor: str = "kubectl", clock: Callable[[], float] = time.time) -> None:
        self.file = file
        self._store = Store(file)
        self._actor = actor
        self._clock = clock

    @classmethod
    def create(
        cls, file: Path, settings: WorldSettings | None = None, clock: Callable[[], float] = time.time
    ) -> "EmbeddedWorld":
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
    def open(cls, file: Path, clock: Callable[[], float] = time.time) -> "EmbeddedWorld":
        """A world that exists."""
        if not file.exists():
            raise FileNotFoundError(f"there is no world in {file}")
        return cls(file, clock=clock)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    # Objects

    def apply(self, body: Body) -> Body:
        """Create an object, or merge it into the one of its name; its status too."""
        return self._write(lambda cluster: _applied(cluster, body))

    def put_raw(self, body: Body) -> Body:
        """Store an object as it is, whatever it says: for tests of objects that nobody can read."""
        return self._write(lambda cluster: table.put(cluster.connection, body))

    def patch(self, kind: str, key: str, patch: Body, subresource: str = "") -> Body:
        """A merge patch."""
        return self._write(lambda cluster: cluster.patch(kind, key_in(kind, key), patch, subresource))

    def delete(self, kind: str, key: str, grace: int | None = None) -> None:
        """Delete an object, as kubectl does."""
        self._write(lambda cluster: cluster.delete(kind, key_in(kind, key), grace=grace))

    def get(self, kind: str, key: str) -> Body | None:
        """One object."""
        return self._read(lambda cluster: cluster.read(kind, key_in(kind, key)))

    def objects(self, kind: str) -> list[Body]:
        """All objects of a kind."""
        return self._read(lambda cluster: list(table.every(cluster.connection, kind)))

    def scale(self, deployment: str, replicas: int) -> Body:
        """Set the number of replicas of a Deployment."""
        return self.patch("Deployment", deployment, {"spec": {"replicas": replicas}})

    def silence(self, node: str) -> None:
        """The node's kubelet falls silent for good: Ready turns Unknown, its pods neither start nor stop."""
        self.patch("Node", node, {"metadata": {"annotations": {SILENT: "true"}}})
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        condition = {**unknown, "lastTransitionTime": format_time(self._clock())}
        self.patch("Node", node, {"status": {"conditions": [condition]}}, "status")

    # The cloud

    def declare_shelf(self, declaration: Mapping[str, Any]) -> None:
        """What this world sells, in place of the simulator's types. Before anybody opens it."""
        self._write(lambda cluster: write_shelf(cluster.connection, declaration))

    def place(self, machine: Machine) -> Machine:
        """Put an instance there as it is said to be, whoever bought it."""
        return self._write(lambda cluster: rows.insert(cluster.connection, machine))

    def instances(self) -> list[Machine]:
        """All instances that there ever were, oldest first."""
        return self._read(lambda cluster: rows.every(cluster.connection))

    def live_instances(self) -> list[Machine]:
        """Those that are not gone."""
        return self._read(lambda cluster: rows.unended(cluster.connection))

    def buy(self, order: Order) -> Bought:
        """Buy behind the product's back: a stranger's instance, or one that nobody recorded."""
        return self._write(lambda cluster: rows.buy(cluster.connection, order, cluster.now))

    def end_instance(self, provider_id: str) -> None:
        """Somebody terminates an instance by hand."""
        self._write(lambda cluster: rows.end(cluster.connection, provider_id, cluster.now))

    def set_famine(self, instance_type: str = EVERY, zone: str = EVERY, capacity_type: str = EVERY) -> None:
        """These pools have nothing to sell from now on."""
        pool = (instance_type, zone, capacity_type)
        self._write(lambda cluster: rows.set_famine(cluster.connection, pool))

    def end_famines(self) -> None:
        """Everything is for sale again; what the product remembers as short stays so until it is forgotten."""
        self._write(lambda cluster: rows.end_famines(cluster.connection))

    def never_join(self, count: int = -1) -> None:
        """The next launches (-1: all of them) boot, and their kubelets stay silent. 0 ends it."""
        self.set(never_join=count)

    def set_boot_delay(self, seconds: float) -> None:
        """How long instances that are launched from now on take to boot."""
        self.set(boot=seconds)

    def fail(self, operation: str, moment: Moment, failure: str = "Unreachable", times: int = 1) -> None:
        """Let the next calls of an operation fail: cloud:launch, cloud:terminate, `cluster:patch NodeClaim`, ..."""
        self._write(lambda cluster: faults.order(cluster.connection, operation, moment, failure, times))

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
        """The world moves by itself, on a thread of its own, until the end of the block."""
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


def _applied(cluster: Cluster, body: Body) -> Body:
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
