"""A simulated world as a test uses it: everything a person can do, and objects that no API server would accept, clouds
without capacity, and kubelets that fall silent.

Tests use nothing but this: tables and columns may change.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

import orjson

from dovetail.adapters.simulator import world
from dovetail.adapters.simulator.api_server import objects as table
from dovetail.adapters.simulator.cloud import instances as instances
from dovetail.adapters.simulator.cloud.catalogue import SETTING, declared
from dovetail.adapters.simulator.cloud.instances import InstanceRow
from dovetail.adapters.simulator.play.instances import SILENT
from dovetail.adapters.simulator.play.player import Player
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

EVERY: Final = "*"


class SimulatedWorld(world.SimulatedWorld):
    """One file, and everything that a test can do to it."""

    def put_raw(self, body: Json) -> Json:
        """Store an object unchecked: for tests of objects that cannot be read."""
        return self._write(lambda cluster: table.put(cluster.connection, body))

    def put_all(self, bodies: Iterable[Json]) -> int:
        """Store objects unchecked in one transaction, for clusters of any size; how many there were."""
        return self._write(lambda cluster: sum(1 for body in bodies if table.put(cluster.connection, body)))

    def silence(self, node: str) -> None:
        """The node's kubelet falls silent for good: Ready turns Unknown, its pods neither start nor stop."""
        self.patch("Node", node, {"metadata": {"annotations": {SILENT: "true"}}})
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        condition = {**unknown, "lastTransitionTime": format_time(self._clock())}
        self.patch("Node", node, {"status": {"conditions": [condition]}}, "status")

    def declare_catalogue(self, declaration: Mapping[str, Any]) -> None:
        """What this world sells, instead of the default types: see `declared` for the form. To be called before the
        world is opened."""
        text = orjson.dumps(declaration).decode()
        declared(text)  # a declaration that cannot be read fails here, not where the world is opened next
        self._run(
            "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            *(SETTING, text),
        )

    def add_instance(self, row: InstanceRow) -> InstanceRow:
        """Add an instance as it is described, without a launch."""
        return self._write(lambda cluster: instances.insert(cluster.connection, row))

    def sell_out(self, instance_type: str = EVERY, zone: str = EVERY, capacity_type: str = EVERY) -> None:
        """The cloud has no capacity for these offerings from now on."""
        statement = "INSERT OR IGNORE INTO famines (instance_type, zone, capacity_type) VALUES (?, ?, ?)"
        self._run(statement, instance_type, zone, capacity_type)

    def end_sell_outs(self) -> None:
        """The cloud has capacity for everything again; noticed shortages last until they are forgotten."""
        self._run("DELETE FROM famines")

    def forget_shortages(self) -> None:
        """Forget early what launches have learned of sold-out offerings."""
        self._run("DELETE FROM shortages")

    def mend(self) -> None:
        """Calls no longer fail on order."""
        self._run("DELETE FROM faults")

    def hasten(self, claim: str = EVERY) -> None:
        """A claim's instance now does at once what would take it time: it boots and joins, even if it was never to; a
        terminating one ends."""
        now, which = self._clock(), "state IN ({}) AND ? IN (claim_name, '*')"
        living, leaving = which.format("'pending', 'running'"), which.format("'terminating'")
        self._run(f"UPDATE instances SET boots = ?, joins = 1 WHERE {living}", now, claim)
        self._run(f"UPDATE instances SET ends = ? WHERE {leaving}", now, claim)

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

    def _run(self, statement: str, *values: str | float) -> None:
        self._write(lambda cluster: cluster.connection.execute(statement, values))


def _play(player: Player, stop: Event, failures: list[BaseException]) -> None:
    try:
        player.run(stop)
    except BaseException as error:
        failures.append(error)
        raise
