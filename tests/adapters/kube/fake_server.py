"""An API server that gives the answers that a test sets, for what a real one cannot be made to answer at will.

Each path has a queue of answers; the last one stays.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.model.values.json import Json

GONE: Json = {"kind": "Status", "reason": "NotFound", "message": "not found"}  # of an object

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


def says(status: int, body: Json | bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
    """An ordinary answer. It names its kind, as all of the API server's do; bytes are sent as they are."""
    content = body if isinstance(body, bytes) else orjson.dumps({"kind": "Status", **(body or {})})

    kind = "text/html" if content.startswith(b"<") else "application/json"

    async def reply(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=content, headers=headers, content_type=kind)

    return reply


NOT_SERVED: Reply = says(404, b"404 page not found\n")  # at the path of a kind
_KIND = re.compile(r"(/api|/apis/[^/]+)/[^/]+/[^/]+")


def streams(*parts: Json | bytes, hang: bool = True, lasts: float = 0.0, kind: str = "application/json") -> Reply:
    """A watch: events (or raw bytes as they are) in this order, and then silence or, after so many seconds, the end."""

    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for part in parts:
            await response.write(part if isinstance(part, bytes) else orjson.dumps(part) + b"\n")
            await asyncio.sleep(0)
        await asyncio.sleep(3600 if hang else lasts)
        return response

    return reply


def discovery(*paths: str) -> dict[str, Reply]:
    """What a server with the kinds at these paths tells of itself, by path."""
    kinds: dict[str, list[str]] = {"/apis/apps/v1": ["deployments"]}
    for path in paths:
        version, _, plural = path.rpartition("/")
        kinds.setdefault(version, []).append(plural)
    groups = [
        {"name": version.split("/")[2], "versions": [{"groupVersion": version.removeprefix("/apis/")}]}
        for version in kinds
    ]
    told: dict[str, Json] = {"/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}}
    for version, plurals in kinds.items():
        named = [{"name": plural} for plural in plurals]
        told[version] = {"kind": "APIResourceList", "groupVersion": version, "resources": named}
    return {path: says(200, body) for path, body in told.items()}


class FakeServer:
    """Listens on loopback; remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._replies: dict[str, list[Reply]] = {}
        self.asked: list[tuple[str, str, dict[str, str], Any, dict[str, str]]] = []
        self.url = ""

    def on(self, path: str, *replies: Reply) -> None:
        """What to answer there, one after the other."""
        self._replies[path] = list(replies)

    def serves(self, *paths: str) -> None:
        """Its discovery names the kinds at these paths and no others of their groups."""
        self._replies.update({path: [reply] for path, reply in discovery(*paths).items()})

    def kubeconfig(self, token: str = "") -> Path:
        """A file that leads here."""
        user = f"{{token: {token}}}" if token else "{}"
        path = self._folder / "kubeconfig"
        path.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, "
            "contexts: [{name: c, context: {cluster: c, user: u}}], "
            f"clusters: [{{name: c, cluster: {{server: '{self.url}'}}}}], users: [{{name: u, user: {user}}}]}}"
        )
        return path

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = orjson.loads(raw) if raw else None
        self.asked.append((request.method, request.path, dict(request.query), body, dict(request.headers)))
        key = f"{request.path}?watch" if "watch" in request.query else request.path
        replies = self._replies.get(key) or [NOT_SERVED if _KIND.fullmatch(request.path) else says(404, GONE)]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return await reply(request)


@asynccontextmanager
async def fake_server(folder: Path, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeServer]:
    """One server, on a free port unless one is named."""
    server = FakeServer(folder)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[tuple[FakeServer, Client]]:
    """A server and a client of it."""
    async with fake_server(folder) as server:
        client = Client(ClusterAddress(kubeconfig=server.kubeconfig()))
        await client.open()
        try:
            yield server, client
        finally:
            await client.close()
