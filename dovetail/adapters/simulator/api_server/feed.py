"""The watch: what has changed since a revision, and the thread that feeds it to a cache.

`PRAGMA data_version` shows within a few microseconds whether another connection has committed; only then is the log
read. Of several changes of one object only the last is reported, but every deletion is, because another object may have
taken the name since.
"""

import logging
import sqlite3
import threading
from dataclasses import dataclass

import orjson

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.store import Store
from dovetail.model.values.json import Json

_log = logging.getLogger(__name__)

# Each look costs some microseconds; 10 ms keep the lag unnoticeable and the cost under 1 % of a core.
POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """An object as it stands now, or the last state of one that is gone."""

    kind: str
    body: Json
    deleted: bool


def data_version(connection: sqlite3.Connection) -> int:
    """A number that differs whenever another connection has committed."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def news_since(connection: sqlite3.Connection, revision: int) -> tuple[list[News], int]:
    """What has changed after a revision, in order, and the revision up to which that is complete."""
    rows = connection.execute("SELECT * FROM changes WHERE revision > ? ORDER BY revision", (revision,)).fetchall()
    last = {(row["kind"], row["key"]): row["revision"] for row in rows}
    found = []
    for row in rows:
        if row["deleted"] is not None:
            found.append(News(kind=row["kind"], body=orjson.loads(row["deleted"]), deleted=True))
        elif last[row["kind"], row["key"]] == row["revision"]:
            body = objects.read(connection, row["kind"], row["key"])
            if body is None:
                raise RuntimeError(f"{row['kind']} {row['key']} is in the log and not among the objects")
            found.append(News(kind=row["kind"], body=body, deleted=False))
    return found, (rows[-1]["revision"] if rows else revision)


class Feed:
    """Keeps a cache in step with the file, on a thread of its own."""

    def __init__(self, store: Store, cache: Cache) -> None:
        self._store = store
        self._cache = cache
        self._kinds = [kind.name for kind in cache.kinds()]
        self._stop = threading.Event()
        self._synced = threading.Event()
        self._problem = "not read yet"
        self._thread = threading.Thread(target=self._run, name="embedded-watch", daemon=True)

    def start(self) -> None:
        """Read everything once, then follow."""
        self._thread.start()
        self._synced.wait()

    def problem(self) -> str:
        """Why the view is not usable; empty while it is."""
        return self._problem

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            # Whatever failed, the view must be unusable: otherwise decisions would be made on old objects.
            _log.exception("the watch of %s has ended", self._store.path)
            self._problem = f"the watch has ended: {error}"
            self._cache.poke()
        finally:
            self._synced.set()

    def _follow(self) -> None:
        connection = self._store.connection()
        version = data_version(connection)
        revision = self._list()
        self._problem = ""
        self._synced.set()
        while not self._stop.wait(POLL_SECONDS):
            newest = data_version(connection)
            if newest != version:
                version = newest
                revision = self._apply_changes(revision)

    def _list(self) -> int:
        with self._store.reading() as connection:
            revision = objects.newest_revision(connection)
            for kind in self._kinds:
                self._cache.replace(kind, objects.every(connection, kind), revision)
        return revision

    def _apply_changes(self, revision: int) -> int:
        with self._store.reading() as connection:
            found, newest = news_since(connection, revision)
        for news in found:
            if news.kind in self._kinds:
                self._cache.apply(news.kind, news.body, deleted=news.deleted)
        return newest
