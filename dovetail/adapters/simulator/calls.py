"""How the ports reach the world: one call, one transaction, one entry in the ledger, ordered faults included.

The clock is read inside the transaction, so that moments rise with the revisions. A fault after the effect is raised
once the transaction is committed, so that it does not take the effect back.
"""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from dovetail.adapters.simulator import faults, ledger
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.store import Store

T = TypeVar("T")
Step = Callable[[sqlite3.Connection, float], T]


class Calls:
    """The world as one actor (a user agent) reaches it."""

    def __init__(self, store: Store, actor: str, clock: Callable[[], float]) -> None:
        self.store = store
        self.actor = actor
        self.clock = clock

    async def cluster(self, verb: str, kind: str, step: Callable[[Cluster], T]) -> T:
        """A call to the cluster; faults are ordered for `cluster:<verb> <Kind>`."""
        operation = f"cluster:{verb} {kind}"
        return await self.perform(operation, lambda connection, now: step(Cluster(connection, self.actor, now)))

    async def perform(self, operation: str, step: Step[T]) -> T:
        """A call to the cluster or the cloud, as a transaction of its own."""
        return await self.store.run(lambda: self._perform(operation, step))

    async def read(self, step: Callable[[sqlite3.Connection], T]) -> T:
        """A read that leaves no entry in the ledger."""
        return await self.store.run(lambda: self._read(step))

    def _perform(self, operation: str, step: Step[T]) -> T:
        with self.store.writing() as connection:
            now = self.clock()
            due = faults.take(connection, operation, "before")
            if due is None:
                result = step(connection, now)
                lost = faults.take(connection, operation, "after")
            else:
                self._note(connection, operation, now)
        if due is not None:
            raise due
        if lost is not None:
            raise lost
        return result

    def _note(self, connection: sqlite3.Connection, operation: str, now: float) -> None:
        entry = ledger.Entry(at=now, actor=self.actor, operation=operation, outcome="failed before its effect")
        ledger.append(connection, entry)

    def _read(self, step: Callable[[sqlite3.Connection], T]) -> T:
        with self.store.reading() as connection:
            return step(connection)
