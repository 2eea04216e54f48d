"""`dovetail top --web`: the workers' page in a browser of this machine.

A small server on 127.0.0.1 forwards each request to the API server's proxy with the person's kubeconfig. Other users of
this machine do not know the first part of the path, which is random at each start, and pages of other origins learn
nothing because any other name for this machine is refused. What no worker answers, the view of all clusters of the
Temporal namespace, it answers itself if it can.
"""

import http.client
import json
import secrets
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import unquote

from dovetail.answers.failures import CommandFailed
from dovetail.answers.serving.headers import ALWAYS, HANDED_ON
from dovetail.cli.output import say
from dovetail.cli.remote.link import Link
from dovetail.cli.remote.workers import Workers
from dovetail.cli.top.clusters import Clusters

HOST: Final = "127.0.0.1"
STREAM_SECONDS: Final = 660.0  # longer than a worker lets a follower stay
PIECE: Final = 65536
FLEET: Final = "fleet"
HERE: Final = "page/here.js"  # the page's file that says what exists besides the worker's answers
KNOWS_CLUSTERS: Final = "export const clusters = true;\n"


def serve_page(workers: Workers, port: int, clusters: Clusters | None) -> None:
    """Serve until interrupted. `workers` have been asked already, so their Service is known; without `clusters` the
    page has no view of them."""
    server = forwarder(workers, port, clusters)
    say(f"{server.address}  (Ctrl-C ends it)")
    try:
        server.serve_forever()
    finally:
        server.server_close()


class Forwarder(ThreadingHTTPServer):
    """A thread for each request; followed streams end with the process."""

    daemon_threads = True
    address = ""

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that has gone in mid-answer is no news in the terminal."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def forwarder(workers: Workers, port: int, clusters: Clusters | None = None) -> Forwarder:
    """The server, already listening."""
    secret = secrets.token_urlsafe(16)
    turn = threading.local()

    def link() -> Link:
        """A connection for each thread."""
        if not hasattr(turn, "link"):
            turn.link = Link(workers.access, STREAM_SECONDS)
        mine: Link = turn.link
        return mine

    try:
        server = Forwarder((HOST, port), _handler(f"/{secret}/", _Behind(workers.below, link, clusters)))
    except OSError as error:
        raise CommandFailed(f"--port {port}: {error.strerror}") from None
    server.address = f"http://{HOST}:{server.server_port}/{secret}/page"
    return server


@dataclass(frozen=True, slots=True)
class _Behind:
    """The page's sources: the workers' API, this thread's connection to it, and all clusters."""

    service: str
    link: Callable[[], Link]
    clusters: Clusters | None


class _Replies(BaseHTTPRequestHandler):
    """Sends answers, from whichever source."""

    def hand_on(self, answer: http.client.HTTPResponse) -> None:
        """Forward the answer as it comes, so that a stream stays a stream."""
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type", "text/plain"))
        for name, value in [each for each in answer.getheaders() if each[0] in HANDED_ON]:
            self.send_header(name, value)
        self.end_headers()
        while piece := answer.read1(PIECE):
            self.wfile.write(piece)
            self.wfile.flush()

    def say_clusters(self, clusters: Clusters) -> None:
        """Answer the view of all clusters, which no worker does."""
        try:
            status, document = 200, clusters.document()
        except CommandFailed as error:
            status, document = 502, {"message": str(error)}
        self.say(status, "application/json", json.dumps(document))

    def say(self, status: int, kind: str, text: str) -> None:
        """Send a complete answer."""
        body = text.encode()
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *ALWAYS):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _handler(prefix: str, behind: _Behind) -> type[BaseHTTPRequestHandler]:
    class Handler(_Replies):
        """GET, below the secret part of the path."""

        def do_GET(self) -> None:
            name = self.headers.get("Host", "").rpartition(":")[0]
            path = self.path.removeprefix(prefix)
            if name not in (HOST, "localhost") or not self.path.startswith(prefix):
                self.send_error(404)
            elif ".." in unquote(path.partition("?")[0]):
                self.send_error(400)
            elif behind.clusters is not None and path == FLEET:
                self.say_clusters(behind.clusters)
            elif behind.clusters is not None and path == HERE:
                self.say(200, "text/javascript; charset=utf-8", KNOWS_CLUSTERS)
            else:
                self._ask(path)

        def _ask(self, path: str) -> None:
            connection = behind.link()
            wanted = {"Accept-Encoding": self.headers.get("Accept-Encoding", "")}
            try:
                self.hand_on(connection.opened(behind.service + path, wanted))
            except CommandFailed as error:
                self.send_error(502, explain=str(error))
            except (ConnectionError, TimeoutError, http.client.HTTPException):
                self.close_connection = True  # one of the two sides has disconnected
            finally:
                connection.close()

    return Handler
