"""An API server that holds a large cluster in memory and says what kubelets and pods do, at their true rates.

As much of one as a worker asks for: lists by pages, watches with bookmarks, and writes, which are applied, counted and
told to those who watch. A cluster of thousands of nodes does not fit two cores with etcd and all its kubelets; a worker
cannot tell them from this.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
from aiohttp import web

from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time

BOOKMARK_SECONDS: Final = 60.0
SUBRESOURCES: Final = frozenset({"status", "eviction", "binding"})


class Address(NamedTuple):
    """What a path leads to; an empty name is the whole collection."""

    collection: str
    key: str
    part: str = ""


def address_of(path: str) -> Address:
    """The collection without its namespace, and the object's key in it."""
    parts = path.strip("/").split("/")
    base, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    collection = "/" + "/".join([*base, *rest[:1]])
    name = rest[1] if len(rest) > 1 else ""
    key = f"{namespace}/{name}" if namespace and name else name
    return Address(collection, key, rest[2] if len(rest) > 2 else "")


def key_of(body: Json) -> str:
    """The key of an object in its collection."""
    meta = body["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


@dataclass(slots=True)
class Cluster:
    """All objects, and who watches them."""

    now: float
    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    watchers: dict[str, list[asyncio.Queue[bytes]]] = field(default_factory=dict)
    version: int = 1000
    writes: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)

    def put(self, collection: str, body: Json) -> Json:
        """As somebody writes it."""
        key, known = key_of(body), self.objects.setdefault(collection, {})
        self.version += 1
        kind = "MODIFIED" if key in known else "ADDED"
        known[key] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self._tell(collection, kind, known[key])
        return known[key]

    def remove(self, collection: str, key: str) -> None:
        """It is gone."""
        body = self.objects[collection].pop(key, None)
        if body is not None:
            self.version += 1
            meta = {**body["metadata"], "resourceVersion": str(self.version)}
            self._tell(collection, "DELETED", {**body, "metadata": meta})

    def bookmark(self) -> None:
        """That nothing more has happened, to everybody."""
        for queues in self.watchers.values():
            for queue in queues:
                queue.put_nowait(_line("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))

    def _tell(self, collection: str, kind: str, body: Json) -> None:
        self.told[collection] += 1
        if queues := self.watchers.get(collection):
            line = _line(kind, body)
            for queue in queues:
                queue.put_nowait(line)


def _line(kind: str, body: Json) -> bytes:
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


class ApiServer:
    """The cluster over HTTP."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        if request.path == "/version":
            return _says(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
        at = address_of(request.path)
        if request.method == "GET":
            return await self._read(request, at)
        body = orjson.loads(await request.read() or b"{}")
        if at.collection.endswith("reviews"):
            return _says(201, {**body, "status": {"allowed": True}})
        self.cluster.writes[f"{request.method} {at.collection.rpartition('/')[2]}{at.part and '/' + at.part}"] += 1
        return self._written(request, at, body)

    async def _read(self, request: web.Request, at: Address) -> web.StreamResponse:
        known = self.cluster.objects.get(at.collection, {})
        if at.key:
            return _says(200, known[at.key]) if at.key in known else _says(404, {"reason": "NotFound"})
        if "watch" in request.query:
            return await self._watch(request, at.collection)
        begin, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", "0")) or None
        found = list(_selected(known.values(), request.query.get("fieldSelector", "")))
        page = list(islice(found, begin, None if limit is None else begin + limit))
        end = begin + len(page)
        meta = {"resourceVersion": str(self.cluster.version), "continue": str(end) if end < len(found) else ""}
        return _says(200, {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page})

    async def _watch(self, request: web.Request, collection: str) -> web.StreamResponse:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues = self.cluster.watchers.setdefault(collection, [])
        queues.append(queue)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            async with asyncio.timeout(float(request.query.get("timeoutSeconds", "600"))):
                while True:
                    await response.write(await queue.get())
        except (TimeoutError, ConnectionError):
            return response
        finally:
            queues.remove(queue)

    def _written(self, request: web.Request, at: Address, body: Any) -> web.Response:
        cluster = self.cluster
        if request.method == "POST" and not at.key:
            meta = {"uid": f"made-{cluster.version}", "creationTimestamp": format_time(cluster.now), **body["metadata"]}
            if at.collection.endswith("/events"):
                return _says(201, {**body, "metadata": {**meta, "resourceVersion": str(cluster.version)}})
            return _says(201, cluster.put(at.collection, {**body, "metadata": meta}))
        known = cluster.objects.get(at.collection, {}).get(at.key)
        if known is None:
            return _says(404, {"reason": "NotFound", "message": "not found"})
        if request.method == "DELETE":
            cluster.remove(at.collection, at.key)
            return _says(200, known)
        changed = _with_parts(known, body) if isinstance(body, list) else merged(known, body)
        return _says(200, cluster.put(at.collection, changed))


def _says(status: int, body: Json) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")


def _selected(found: Any, selector: str) -> Iterator[Json]:
    """The only selector that a worker uses: pods of a node."""
    field_name, _, wanted = selector.partition("=")
    for body in found:
        if not selector or field_name != "spec.nodeName" or (body.get("spec") or {}).get("nodeName") == wanted:
            yield body


def merged(known: Any, change: Any) -> Any:
    """A merge patch."""
    if not isinstance(change, dict):
        return change
    found = dict(known) if isinstance(known, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _with_parts(known: Json, operations: list[Json]) -> Json:
    """A JSON patch whose tests all hold: nobody else writes what a worker does."""
    found = orjson.loads(orjson.dumps(known))
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        where = found
        for part in way:
            where = where[int(part)] if isinstance(where, list) else where.setdefault(part, {})
        if operation["op"] in ("add", "replace"):
            if isinstance(where, list):
                where.insert(len(where) if last == "-" else int(last), operation["value"])
            else:
                where[last] = operation["value"]
        elif operation["op"] == "remove":
            where.pop(int(last) if isinstance(where, list) else last)
    return dict(found)


@asynccontextmanager
async def serving(cluster: Cluster, folder: Path) -> AsyncIterator[Path]:
    """The kubeconfig that leads there, until the block ends."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", ApiServer(cluster).handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    file = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    file.write_bytes(orjson.dumps(config))
    bookmarks = asyncio.create_task(_bookmark(cluster))
    try:
        yield file
    finally:
        bookmarks.cancel()
        await runner.cleanup()


async def _bookmark(cluster: Cluster) -> None:
    while True:
        await asyncio.sleep(BOOKMARK_SECONDS)
        cluster.bookmark()
