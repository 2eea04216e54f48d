"""What every controller of the player is given: the moment, the objects, and a way to write under its own name.

The mirror spares them reading the file: it is brought up to date from the log of changes, so a world in which nothing
happens costs nothing. It is refreshed inside the transaction, while no other process can write, so that no controller
decides on old objects.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.feed import news_since
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue, read_catalogue
from dovetail.adapters.simulator.settings import WorldSettings, read_settings
from dovetail.model.values.json import Json


class Mirror:
    """All objects, as of a revision."""

    def __init__(self) -> None:
        self.revision = -1
        self._kinds: dict[str, dict[str, Json]] = {}
        self._sorted: dict[str, list[Json]] = {}

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Follow the log up to its end."""
        found, self.revision = news_since(connection, self.revision)
        for news in found:
            held = self._kinds.setdefault(news.kind, {})
            self._sorted.pop(news.kind, None)
            if news.deleted:
                held.pop(objects.key_of(news.body), None)
            else:
                held[objects.key_of(news.body)] = news.body

    def every(self, kind: str) -> list[Json]:
        """The objects of a kind, by key."""
        if kind not in self._sorted:
            self._sorted[kind] = [body for _, body in sorted(self._kinds.get(kind, {}).items())]
        return self._sorted[kind]

    def get(self, kind: str, key: str) -> Json | None:
        return self._kinds.get(kind, {}).get(key)

    def all(self) -> Iterator[Json]:
        for held in self._kinds.values():
            yield from held.values()


class Tick:
    """One pass of all controllers, at one moment."""

    def __init__(self, connection: sqlite3.Connection, now: float, mirror: Mirror) -> None:
        self.connection = connection
        self.now = now
        self.mirror = mirror
        self.settings: WorldSettings = read_settings(connection)
        self.catalogue: WorldCatalogue = read_catalogue(connection)
        self.due: float | None = None

    def cluster(self, actor: str) -> Cluster:
        """The cluster, written to as one of its own components."""
        return Cluster(self.connection, actor, self.now)

    def reached(self, moment: float) -> bool:
        """Whether a moment has come; otherwise the player runs again when it has."""
        if moment <= self.now:
            return True
        self.due = moment if self.due is None else min(self.due, moment)
        return False


def conditions_of(body: Json) -> list[dict[str, Any]]:
    """status.conditions."""
    return (body.get("status") or {}).get("conditions") or []


def condition_of(body: Json, kind: str) -> dict[str, Any] | None:
    return next((c for c in conditions_of(body) if c.get("type") == kind), None)


def is_true(body: Json, kind: str) -> bool:
    condition = condition_of(body, kind)
    return condition is not None and condition.get("status") == "True"


def is_deleting(body: Json) -> bool:
    return "deletionTimestamp" in body["metadata"]


def is_over(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def controller_of(body: Json) -> str:
    """The UID of the owner that controls it."""
    references = body["metadata"].get("ownerReferences") or []
    return next((str(r["uid"]) for r in references if r.get("controller")), "")
