"""How fast the simulated world moves, and how its cloud behaves.

Kept in the file, so that every process sees a change at once. Delays are in seconds of real time and are divided by
`speed`: the clock itself is never bent, because the worker compares the objects' timestamps with its own clock.
"""

import dataclasses
import sqlite3
from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """Delays and behaviour. never_join counts the next launches whose kubelet never registers; -1 means all of them."""

    cluster: str = "embedded"
    speed: float = 1.0
    boot: float = 2.0  # from the launch to the kubelet's registration
    node_ready: float = 0.5  # from the registration to the condition Ready
    shutdown: float = 1.0  # from the call to terminate to the instance's end
    pod_start: float = 0.5  # from binding to Ready
    pod_stop: float = 1.0  # from the deletion to the containers' exit, at most the pod's grace; a pod may name another
    repair: float = 600.0  # how long a node may be unhealthy before it is repaired
    shortage: float = 180.0  # how long an offering that was refused is not tried again (AWS-72)
    never_join: int = 0
    foreign_kubelets: bool = True  # whether Nodes without an instance have a kubelet

    def delay(self, name: str) -> float:
        """A delay as it is in this world."""
        seconds: float = getattr(self, name)
        return seconds / self.speed


def read_settings(connection: sqlite3.Connection) -> WorldSettings:
    row = connection.execute("SELECT value FROM settings WHERE name = 'world'").fetchone()
    return WorldSettings(**orjson.loads(row["value"])) if row else WorldSettings()


def write_settings(connection: sqlite3.Connection, settings: WorldSettings) -> None:
    connection.execute(
        "INSERT INTO settings (name, value) VALUES ('world', ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (orjson.dumps(dataclasses.asdict(settings)).decode(),),
    )
