"""Opens the file: connections, transactions, and the thread pool on which an event loop reaches them.

Writers begin IMMEDIATE: with a plain BEGIN, a read followed by a write fails with "database is locked" whenever another
process wrote in between, and no busy timeout covers that upgrade (196,000 such errors in five seconds among three
processes; none this way). Connections belong to one thread each.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.schema import SCHEMA

T = TypeVar("T")

# How long a writer waits for another one. The worst wait measured among three busy processes was 0.4 s.
BUSY_SECONDS = 20.0

# A transaction takes well under a millisecond and writers queue for the file anyway; a few threads let readers pass.
THREADS = 4


class Store:
    """One file, shared by any number of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        # A connection that waits for the file sleeps up to 0.1 s between tries; threads of one process queue here.
        self._writers = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def initialise(self) -> None:
        """Create what the file lacks."""
        connection = self.connection()
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(SCHEMA)

    def connection(self) -> sqlite3.Connection:
        mine: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if mine is None:
            # check_same_thread is off only so that close() may close all of them.
            mine = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            mine.row_factory = sqlite3.Row
            # In WAL mode NORMAL survives the death of any process; only a power cut may lose the last commits.
            mine.execute("PRAGMA synchronous=NORMAL")
            self._local.connection = mine
            with self._lock:
                self._opened.append(mine)
        return mine

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that may write. A rejection is an answer: its entry in the ledger is kept."""
        connection = self.connection()
        with self._writers:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except Rejected:
                connection.execute("COMMIT")
                raise
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the file throughout."""
        connection = self.connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("COMMIT")

    async def run(self, step: Callable[[], T]) -> T:
        """Run a blocking step on this store's own threads: the loop's default pool is small and shared."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="embedded-world")
        return await asyncio.get_running_loop().run_in_executor(self._pool, step)

    def close(self) -> None:
        """Wait for what runs and close every connection."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
        self._local = threading.local()
