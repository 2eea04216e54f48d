"""The player: one `tick` moves the whole world as far as it goes at one moment.

Run as a process of its own, as a thread of a test, or by hand at moments that the test chooses. A tick is one
transaction, so two players on one file do no harm. The loop sleeps until something was written or the next moment has
come, so that a world in which nothing happens costs nothing. It rests as long as a tick took, because nobody else
writes during one: a tick of a large world takes most of a second, and the next one would follow at once.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from dovetail.adapters.simulator.api_server.feed import POLL_SECONDS, data_version
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.adapters.simulator.play.budgets import count_budgets
from dovetail.adapters.simulator.play.collection import collect_orphans, collect_pods, detach_volumes
from dovetail.adapters.simulator.play.daemons import keep_daemon_sets
from dovetail.adapters.simulator.play.deployments import keep_deployments
from dovetail.adapters.simulator.play.endpoints import keep_endpoint_slices
from dovetail.adapters.simulator.play.instances import move_instances
from dovetail.adapters.simulator.play.kubelet import move_pods
from dovetail.adapters.simulator.play.scheduler import bind_pods
from dovetail.adapters.simulator.play.tick import Mirror, Tick
from dovetail.adapters.simulator.play.workloads import keep_replica_sets

# In the order in which causes lead to effects, so that most of what a moment brings about is done in one tick.
CONTROLLERS: Final[tuple[Callable[[Tick], None], ...]] = (
    move_instances,
    collect_orphans,
    collect_pods,
    keep_deployments,
    keep_replica_sets,
    keep_daemon_sets,
    bind_pods,
    move_pods,
    detach_volumes,
    count_budgets,
    keep_endpoint_slices,
)

# A world that does not come to rest within this many ticks at one moment never will.
MAX_TICKS: Final = 100


class Player:
    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._mirror = Mirror()

    def tick(self, now: float) -> float | None:
        """One step of every controller. When to look again: now if anything changed, or a moment, or on news only."""
        with self._store.writing() as connection:
            tick = Tick(connection, now, self._mirror)
            self._mirror.refresh(connection)
            before = self._mirror.revision
            for controller in CONTROLLERS:
                controller(tick)
                self._mirror.refresh(connection)
        return now if self._mirror.revision != before else tick.due

    def settle(self, now: float) -> float | None:
        """Tick until nothing more happens at this moment; the next moment at which something will."""
        for _ in range(MAX_TICKS):
            due = self.tick(now)
            if due is None or due > now:
                return due
        raise RuntimeError("the embedded world does not come to rest")

    def run(self, stop: threading.Event) -> None:
        """Follow the clock and the changes until `stop` is set."""
        connection = self._store.connection()
        version, due = -1, None
        while not stop.is_set():
            newest = data_version(connection)
            rest = POLL_SECONDS
            if newest != version or (due is not None and self._clock() >= due):
                began = time.monotonic()
                version, due = newest, self.tick(self._clock())
                rest = time.monotonic() - began
            stop.wait(rest)
