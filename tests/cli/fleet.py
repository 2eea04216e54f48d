"""A fleet of any size as a worker's documents, and an API server that answers with them by its kubeconfig.

For what is shown of answers and not for how they are made: tests/cli/test_answers.py asks a worker's API itself.
"""

import asyncio
import gzip
import http.client
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dovetail.answers.serving.replies import Answer, Page
from dovetail.answers.shown.documents import Document, document
from dovetail.answers.status.answer import NodeRow, NodesAnswer
from dovetail.cli.top.web import Forwarder
from dovetail.worker.http_server import Endpoint
from tests.cli.test_status_text import NOW, a_status

PREFIX = "/api/v1/namespaces/dovetail/services/dovetail:http-api/proxy/api/v1/"
BELOW = "/api/v1/"  # the same of a worker
TYPES = (("c7g.2xlarge", 0.2896), ("m7i.xlarge", 0.2016), ("r7g.4xlarge", 0.8568), ("g6.xlarge", 0.8048))
POOLS = ("default", "default", "batch", "gpu")


def the_nodes(count: int) -> NodesAnswer:
    """So many nodes, no two alike; every 50th does something."""
    rows = tuple(_node(i) for i in range(count))
    return NodesAnswer(source="cluster prod-eu1", now=NOW, nodes=rows, pools=tuple(sorted(set(POOLS))))


def a_fleet(count: int) -> Document:
    """The same as a document."""
    return document("NodeList", "prod-eu1", the_nodes(count))


def _node(i: int) -> NodeRow:
    kind, price = TYPES[i % len(TYPES)]
    spot, zone = i % 3 == 0, f"eu-west-1{'abc'[i % 3]}"
    what = {0: "Drifted: drain, 5 pods left · PDB payments/api", 25: "drifted"}.get(i % 50, "")
    return NodeRow(
        name=f"ip-10-{i // 60000}-{i // 250 % 240}-{i % 250}.eu-west-1.compute.internal",
        claim=f"{POOLS[i % len(POOLS)]}-{i:05x}",
        pool=POOLS[i % len(POOLS)],
        type=kind,
        zone=zone,
        capacity_type="spot" if spot else "on-demand",
        since=NOW - 60.0 * (i * 7919 % 100_000),
        price=round(price * (0.3 if spot else 1.0), 4),
        cpu_share=(i * 37 % 101) / 100,
        memory_share=(i * 53 % 101) / 100,
        pods=i % 58,
        state="terminating" if i % 50 == 0 else "ready",
        what=what,
        stays='pod web/api-0 has "karpenter.sh/do-not-disrupt"' if i % 20 == 6 else "",
        labels={"team": "web" if i % 2 else "ml", "topology.kubernetes.io/zone": zone},
    )


HISTORY: Document = {
    "kind": "History",
    "name": "default-00001",
    "notes": [],
    "stories": [
        {
            "workflow": "prod-eu1/claim/default-00001",
            "type": "LaunchNode",
            "status": "running",
            "started": "2026-05-28T20:25:00Z",
            "ended": None,
            "lines": [
                {"at": "2026-05-28T20:25:02Z", "text": "launch an instance -> i-1 (2s)", "seconds": 2.0},
                {"at": "2026-05-28T20:25:40Z", "text": "wait for the node -> done (38s)", "seconds": 38.0},
            ],
            "now": [{"step": "drain the node", "since": "2026-05-28T20:26:00Z"}],
        }
    ],
}


@dataclass(slots=True)
class Served:
    """A running server: its kubeconfig, and what it was asked."""

    kubeconfig: Path
    asked: list[str] = field(default_factory=list)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the person who types."""
        return {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent), "LOGNAME": "alice"}


def documents(count: int) -> dict[str, Any]:
    """By path."""
    return {
        "status": {**a_status(), "workers": 2},
        "nodes": a_fleet(count),
        "version": {"apiVersion": "dovetail.sh/v1", "kind": "Versions", "worker": "0.1.0"},
        "history": HISTORY,
        "explain": "Node x: it stays\n" + "\n".join(f"reason {i}" for i in range(60)),
        "plan": "nothing would be done",
        "forecast": "a window opens at 20:00",
        "log": "an empty node left",
        "savings": "$31.50 were saved",
        "savings by=namespace": "namespace shop saved",
        "savings document": {"total": {"saved": 31.5}},
        "replay": "two decisions are kept",
        "shadow": "both decide alike",
    }


def kind_of(body: bytes) -> str:
    """As a worker says it."""
    kinds = {b"<": "text/html; charset=utf-8", b"e": "text/event-stream"}
    return kinds.get(body[:1], "application/json")


@contextmanager
def serving(folder: Path, answers: Mapping[str, Any]) -> Iterator[Served]:
    """As long as the block lasts. Each path of the API has one answer, whatever follows it, except for one
    that has a text and a document, or whose name has a part of what follows."""
    bodies = {path: found if isinstance(found, str) else json.dumps(found) for path, found in answers.items()}

    def answer(target: str) -> Reply:
        url = urlsplit(target)
        path = url.path.partition("/")[0]
        names = [f"{path} {part}" for part in url.query.split("&")]
        names += [path] if "view=" in url.query else [f"{path} document", path]
        body = next((bodies[name] for name in names if name in bodies), None)
        return (200, kind_of(body.encode()), body) if body is not None else NOTHING

    with serving_by(folder, answer) as served:
        yield served


Reply = tuple[int, str, str]  # code, type of content, body
NOTHING: Reply = (404, "application/json", '{"message": "there is none"}')


@contextmanager
def serving_by(folder: Path, answer: Callable[[str], Reply]) -> Iterator[Served]:
    """The same by a function, which is given what follows /api/v1/ of the worker."""

    async def page(target: str) -> Answer:
        return await asyncio.to_thread(answer, target)

    with worker_of(page) as port, api_server(port, folder) as served:
        yield served


@contextmanager
def worker_of(page: Page) -> Iterator[int]:
    """A worker's own HTTP server over these answers, and its port."""
    loop = asyncio.new_event_loop()
    endpoint = Endpoint(host="127.0.0.1", port=0, routes={}, pages={BELOW: page})
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(endpoint.start(), loop).result()
    assert endpoint.server is not None
    try:
        yield endpoint.server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(endpoint.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)


def read_by_the_proxy(kind: str, coding: str, body: bytes) -> None:
    """kube-apiserver's proxy rewrites the links of HTML, so it has to read it. What it takes for "deflate" lacks zlib's
    frame, which every sender gives it: zlib.error then, and the person sees a 500."""
    if kind.startswith("text/html") and coding == "gzip":
        gzip.decompress(body)
    elif kind.startswith("text/html") and coding == "deflate":
        zlib.decompress(body, wbits=-zlib.MAX_WBITS)


@contextmanager
def api_server(port: int, folder: Path) -> Iterator[Served]:
    """An API server whose proxy leads to the worker at this port, and a kubeconfig for it."""
    served = Served(folder / "config")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.asked.append(self.path)
            if not self.path.startswith(PREFIX):
                code, kind, body = NOTHING
                self.say(code, {"Content-Type": kind}, body.encode())
                return
            worker = http.client.HTTPConnection("127.0.0.1", port)
            wanted = {"Accept-Encoding": self.headers.get("Accept-Encoding", "")}
            worker.request("GET", BELOW + self.path.removeprefix(PREFIX), headers=wanted)
            with worker.getresponse() as found:
                data, headers = found.read(), dict(found.headers)
            worker.close()
            try:
                read_by_the_proxy(headers.get("Content-Type", ""), headers.get("Content-Encoding", ""), data)
            except zlib.error as error:
                self.say(500, {"Content-Type": "application/json"}, json.dumps({"message": f"flate: {error}"}).encode())
            else:
                headers.pop("Transfer-Encoding", "")  # of that connection
                self.say(found.status, headers, data)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the server's names; noted like any other

        def say(self, code: int, headers: Mapping[str, str], data: bytes) -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Into no log."""

    server = Forwarder(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    config = {
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here"}}],
    }
    served.kubeconfig.write_text(json.dumps(config))
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
