"""What the server of `dovetail top --web` says in the terminal of a browser that goes away."""

import socket
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from dovetail.cli.top.web import Forwarder

FAILURES = [(ConnectionResetError, False), (BrokenPipeError, False), (ValueError, True)]


@pytest.mark.parametrize(("failure", "says"), FAILURES)
def test_a_browser_that_has_gone_is_no_news_and_a_defect_is(
    failure: type[Exception], says: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            raise failure

    before = set(threading.enumerate())
    with Forwarder(("127.0.0.1", 0), Handler) as server, socket.create_connection(("127.0.0.1", server.server_port)):
        server.handle_request()
        for thread in set(threading.enumerate()) - before:
            thread.join()

    assert (failure.__name__ in capsys.readouterr().err) is says
