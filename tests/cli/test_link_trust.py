"""Which server is trusted: by its address, or by the name that the kubeconfig gives it."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.cli.remote.kubeconfig import Access
from dovetail.cli.remote.link import Link
from testbed.faults.certificates import Authority


class _Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Tests print nothing."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Iterator[str]:
    """A server whose certificate is for api.internal alone; its address."""
    pair = authority.client("api.internal")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    found = HTTPServer(("127.0.0.1", 0), _Answering)
    found.socket = context.wrap_socket(found.socket, server_side=True)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()
    thread.join()


def _link(server: str, authority: Authority, **cluster: str) -> Link:
    entry = {"certificate-authority": str(authority.certificate), **cluster}
    return Link(Access(server=server, namespace="default", cluster=entry), seconds=30.0)


def test_a_server_is_known_by_the_name_that_the_kubeconfig_gives_it(server: str, authority: Authority) -> None:
    link = _link(server, authority, **{"tls-server-name": "api.internal"})
    assert link.get("/").text == "ok"
    link.close()


@pytest.mark.parametrize("cluster", [{}, {"tls-server-name": "other.internal"}])
def test_a_server_with_a_certificate_for_another_name_is_refused(
    server: str, authority: Authority, cluster: dict[str, str]
) -> None:
    with pytest.raises(CommandFailed, match="its certificate is not trusted"):
        _link(server, authority, **cluster).get("/")
