"""Requests to the API server: one connection for all requests of a command."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from dovetail.answers.failures import CommandFailed
from dovetail.cli.remote.identity import RemoteIdentity, identity_of, proxy_of, trust_of
from dovetail.cli.remote.kubeconfig import Access

if TYPE_CHECKING:
    import http.client

Read = TypeVar("Read")

SECONDS: Final = 40.0  # a worker that is busy answers within 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    kind: str  # the content type
    text: str

    @property
    def message(self) -> str:
        """The message of a refusal, in one line."""
        if "json" in self.kind:
            try:
                found = json.loads(self.text)
            except ValueError:
                return self.text[:200]
            return str(found.get("message", "")) if isinstance(found, dict) else self.text[:200]
        return " ".join(self.text.split())[:200]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a request has besides its path."""

    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


PLAIN: Final = Sent()


class Link:
    """A connection to one API server, opened with the first request."""

    def __init__(self, access: Access, seconds: float = SECONDS) -> None:
        self.access = access
        self._seconds = seconds  # for a connection, and for an answer
        self._identity: RemoteIdentity | None = None
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str) -> Reply:
        """One GET; CommandFailed if the server cannot be reached."""

        def whole(answer: "http.client.HTTPResponse") -> Reply:
            text = answer.read().decode("utf-8", "replace")
            return Reply(status=answer.status, kind=answer.getheader("Content-Type", ""), text=text)

        return self._asked(path, whole)

    def send(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> tuple[int, str]:
        """One request of any kind: status and text of its answer. Refused credentials are read once more."""
        headers = {"Content-Type": kind} if kind else {}
        status, text = self._sent(method, path, body, headers)
        if status == 401:
            self.close()
            self._identity = None
            status, text = self._sent(method, path, body, headers)
        return status, text

    def _sent(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, str]:
        def whole(answer: "http.client.HTTPResponse") -> tuple[int, str]:
            return answer.status, answer.read().decode("utf-8", "replace")

        return self._asked(path, whole, Sent(method=method, body=body, headers=headers))

    def opened(self, path: str, headers: Mapping[str, str]) -> "http.client.HTTPResponse":
        """One GET whose answer is still to be read; CommandFailed if the server cannot be reached."""
        return self._asked(path, lambda answer: answer, Sent(headers=headers))

    def _asked(self, path: str, read: "Callable[[http.client.HTTPResponse], Read]", sent: Sent = PLAIN) -> "Read":
        import http.client
        import ssl

        try:
            connection, headers = self._open()
            connection.request(sent.method, self._base() + path, sent.body, {**headers, **sent.headers})
            return read(connection.getresponse())
        except ssl.SSLCertVerificationError as error:
            raise CommandFailed(
                f"{self.access.server}: its certificate is not trusted: {error.verify_message}"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise CommandFailed(f"{self.access.server}: no answer: {error or type(error).__name__}") from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _base(self) -> str:
        return urlsplit(self.access.server).path.rstrip("/")

    def _open(self) -> "tuple[http.client.HTTPConnection, Mapping[str, str]]":
        identity = self._identity = self._identity or identity_of(self.access)
        self._connection = self._connection or connected(self.access, identity, self._seconds)
        accepted = {"Accept": "application/json, text/plain, */*", "User-Agent": f"dovetail/{version('dovetail')}"}
        return self._connection, {**accepted, **_named(identity)}


def _named(identity: RemoteIdentity) -> Mapping[str, str]:
    return {"Authorization": identity.authorization} if identity.authorization else {}


def connected(access: Access, identity: RemoteIdentity, seconds: float) -> "http.client.HTTPConnection":
    """A connection, through a proxy if one is named; nothing is sent yet."""
    import http.client

    url, proxy = urlsplit(access.server), proxy_of(access)
    host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
    through = urlsplit(proxy) if proxy else None
    first = (through.hostname or "", through.port or 80) if through is not None else (host, port)
    arguments: dict[str, Any] = {"timeout": seconds}
    if url.scheme == "http":
        return http.client.HTTPConnection(*first, **arguments)
    connection = http.client.HTTPSConnection(*first, context=trust_of(access, identity), **arguments)
    if through is not None:
        connection.set_tunnel(host, port)
    return connection
