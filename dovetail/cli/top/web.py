"""`dovetail top --web`: the workers' page in a browser of this machine.

A small server on 127.0.0.1 hands each request on to the API server's proxy with the person's kubeconfig. Another user
of this machine does not know the first part of the path, which is drawn by chance at each start, and pages of other
origins learn nothing because another name for this machine is refused.
"""

import http.client
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import unquote

from dovetail.answers.failures import CommandFailed
from dovetail.answers.serving.headers import HANDED_ON
from dovetail.cli.output import say
from dovetail.cli.remote.link import Link
from dovetail.cli.remote.workers import Workers

HOST: Final = "127.0.0.1"
STREAM_SECONDS: Final = 660.0  # longer than a worker lets anybody follow
PIECE: Final = 65536


def serve_page(workers: Workers, port: int) -> None:
    """Until it is interrupted. `workers` have been asked already, so their Service is known."""
    server = forwarder(workers, port)
    say(f"{server.address}  (Ctrl-C ends it)")
    try:
        server.serve_forever()
    finally:
        server.server_close()


class Forwarder(ThreadingHTTPServer):
    """One request a thread; the streams that are followed end with the process."""

    daemon_threads = True
    address = ""


def forwarder(workers: Workers, port: int) -> Forwarder:
    """The server, which listens already."""
    secret = secrets.token_urlsafe(16)
    turn = threading.local()

    def link() -> Link:
        """A connection for each thread."""
        if not hasattr(turn, "link"):
            turn.link = Link(workers.access, STREAM_SECONDS)
        mine: Link = turn.link
        return mine

    try:
        server = Forwarder((HOST, port), _handler(f"/{secret}/", workers.below, link))
    except OSError as error:
        raise CommandFailed(f"--port {port}: {error.strerror}") from None
    server.address = f"http://{HOST}:{server.server_port}/{secret}/page"
    return server


def _handler(prefix: str, service: str, link: Callable[[], Link]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """GET, below the secret part of the path."""

        def do_GET(self) -> None:
            name = self.headers.get("Host", "").rpartition(":")[0]
            if name not in (HOST, "localhost") or not self.path.startswith(prefix):
                self.send_error(404)
                return
            path = self.path.removeprefix(prefix)
            if ".." in unquote(path.partition("?")[0]):
                self.send_error(400)
                return
            connection = link()
            try:
                answer = connection.opened(service + path, {"Accept-Encoding": self.headers.get("Accept-Encoding", "")})
                self._hand_on(answer)
            except CommandFailed as error:
                self.send_error(502, explain=str(error))
            except (ConnectionError, TimeoutError, http.client.HTTPException):
                self.close_connection = True  # one of the two sides has gone away
            finally:
                connection.close()

        def _hand_on(self, answer: http.client.HTTPResponse) -> None:
            """As it comes, so that a stream is one."""
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type", "text/plain"))
            for name, value in [each for each in answer.getheaders() if each[0] in HANDED_ON]:
                self.send_header(name, value)
            self.end_headers()
            while piece := answer.read1(PIECE):
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Into no log."""

    return Handler
