"""The API server's paths: a request as HTTP carries it, and the status and body of the answer.

Only what the product asks is served: a list is one page, and of selectors the node of pods is understood.
"""

import sqlite3
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS, gated_kinds
from dovetail.adapters.simulator.api_server import objects
from dovetail.adapters.simulator.api_server.cluster import Cluster
from dovetail.adapters.simulator.api_server.eviction import evict
from dovetail.adapters.simulator.api_server.patching import PATCHES
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls
from dovetail.model.values.json import Json

_KINDS: Final = {
    "/api/v1/events": "Event",
    **{kind.path: kind.name for kind in (*CLUSTER_KINDS, *gated_kinds(buffers=True, moves=True, devices=True))},
}
_DONE: Final[Json] = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
_ON_NODE: Final = "spec.nodeName="


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request. `body` is the decoded JSON."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = ""


class Answered(NamedTuple):
    status: int
    body: Json


class _JudgedError(Exception):
    """Undoes the transaction of a dry run."""

    def __init__(self, answer: Answered) -> None:
        super().__init__()
        self.answer = answer


class _Place(NamedTuple):
    """What a path names: without a name all objects of a kind."""

    kind: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ApiServer:
    """The API server as one client reaches it."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def answer(self, asked: Asked) -> Answered:
        """One request. What is not served is answered 404 without a Status, as the real server does."""
        place = _place_of(asked.path)
        if place is None:
            return Answered(404, {"message": "404 page not found"})
        if asked.method == "GET":
            return await self._calls.read(lambda connection: _read(connection, place, asked))
        try:
            return await self._calls.cluster(
                _verb(asked, place), place.kind, lambda cluster: _written(cluster, place, asked)
            )
        except _JudgedError as judged:
            return judged.answer


def _place_of(path: str) -> _Place | None:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    served = 2 if parts[0] == "api" else 3
    group, rest, namespace = parts[:served], parts[served:], ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        _, namespace, *rest = rest
    kind = _KINDS.get("/".join(("", *group, *rest[:1])))
    _, name, subresource, *_ = (*rest, "", "", "")
    return None if kind is None else _Place(kind, namespace, name, subresource)


def _verb(asked: Asked, place: _Place) -> str:
    """As the ledger and ordered faults name it."""
    match asked.method:
        case "POST":
            return "evict" if place.subresource == "eviction" else "create"
        case "PATCH":
            return f"patch-{place.subresource}" if place.subresource else "patch"
        case method:
            return method.lower()


def _read(connection: sqlite3.Connection, place: _Place, asked: Asked) -> Answered:
    if not place.name:
        node = asked.query.get("fieldSelector", "").removeprefix(_ON_NODE)
        items = objects.pods_on(connection, node) if node else list(objects.every(connection, place.kind))
        version = str(objects.newest_revision(connection))
        return Answered(200, {"kind": "List", "metadata": {"resourceVersion": version}, "items": items})
    found = objects.read(connection, place.kind, place.key)
    if found is None:
        return Answered(404, Rejected(404, "NotFound", f"{place.kind} {place.key} not found").status())
    return Answered(200, found)


def _written(cluster: Cluster, place: _Place, asked: Asked) -> Answered:
    try:
        answer = _write(cluster, place, asked)
    except Rejected as rejected:
        answer = Answered(rejected.code, rejected.status())
    if "dryRun" in asked.query:
        raise _JudgedError(answer)
    return answer


def _write(cluster: Cluster, place: _Place, asked: Asked) -> Answered:
    body = asked.body or {}
    match _verb(asked, place):
        case "create":
            return Answered(201, cluster.create(body))
        case "evict":
            evict(cluster, place.key, body["deleteOptions"]["preconditions"]["uid"])
            return Answered(201, _DONE)
        case "delete":
            left = cluster.delete(place.kind, place.key, body["preconditions"]["uid"], body.get("gracePeriodSeconds"))
            return Answered(200, left or _DONE)
        case _:
            patch = PATCHES[asked.content_type]
            return Answered(200, cluster.patch(place.kind, place.key, body, place.subresource, patch))
