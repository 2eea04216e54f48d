"""The one place that talks to the API server.

Paths and raw JSON in, raw JSON out; the official client provides the connection (TLS, tokens, proxies), its models are
not used (1 ms a pod). Every status is checked here: one that the caller does not expect becomes a failure. Every
request has a time limit.

Who we are and whom we trust is read anew where the server refuses us (401) or TLS refuses the server: tokens, client
certificates and authorities change under a worker that runs for months.
"""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import getproxies

import aiohttp
import orjson

from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.failures import Answer, NotAWatch, body_of, failure_of
from dovetail.adapters.kube.official import client as official
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kube.server_clock import ServerClock
from dovetail.ports.failures import Forbidden, Misconfigured, Unreachable

_JSON: Final = "application/json"
_CONNECT_SECONDS: Final = 5.0
_CALL_SECONDS: Final = 30.0  # lists included; the API server gives up on a request of its own accord about then
_RELOAD_SECONDS: Final = 10.0  # credentials refused sooner than this after they were renewed are not renewed again


_Trust = tuple[object, ...]
Observer = Callable[[Request, int, float], None]  # request, status (0: no answer), seconds


def unobserved(request: Request, status: int, seconds: float) -> None:
    """The observer of a client whose calls are not counted."""


class Client:
    """A connection to one cluster, for one event loop."""

    def __init__(
        self, address: ClusterAddress, observe: Observer = unobserved, clock: ServerClock | None = None
    ) -> None:
        self._address = address
        self._observe = observe
        self._clock = clock  # learns the server's time from every answer of its own
        self._official: Any = None
        self._loading = asyncio.Lock()
        self._trust: _Trust = ()
        self._loaded_at = float("-inf")

    async def open(self) -> None:
        """Load the configuration; no request is made."""
        await self._load()

    async def close(self) -> None:
        if self._official is not None:
            await self._official.close()

    @property
    def host(self) -> str:
        """The server's address, for people."""
        return str(self._official.configuration.host) if self._official is not None else "(not loaded)"

    @property
    def authority(self) -> str:
        """The certificates that identify the server, in base64; empty if the system's own are used."""
        file = self._official.configuration.ssl_ca_cert if self._official is not None else None
        return base64.b64encode(_content(file)).decode()

    async def call(self, request: Request) -> Answer:
        """One request and its answer; a failure if the status is neither success nor expected."""
        if self._address.read_only and request.writes:
            raise Forbidden(request.subject, f"not written: {request.method} by a process that only looks")
        started = asyncio.get_running_loop().time()
        try:
            answer = await self._once(request)
        except Unreachable as failure:
            if not (_is_refused_by_tls(failure) and await self._renew(started)):
                raise
            answer = await self._once(request)
        else:
            if answer.status == 401 and await self._renew(started):
                answer = await self._once(request)
        return request.checked(answer)

    @asynccontextmanager
    async def stream(self, request: Request, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch: its lines as they arrive. Silence for longer than `idle` seconds ends it as Unreachable."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=idle)
        started = asyncio.get_running_loop().time()
        try:
            with _translated(request.subject):
                async with asyncio.timeout(_CALL_SECONDS):
                    response = await self._send(request, timeout)
        except Unreachable as failure:
            if _is_refused_by_tls(failure):
                await self._renew(started)
            raise
        try:
            if response.status != 200:
                with _translated(request.subject):
                    answer = await _read(response)
                if answer.status == 401:
                    await self._renew(started)
                raise failure_of(answer, request.subject)
            kind = response.headers.get("Content-Type", _JSON)
            if kind.partition(";")[0].strip().lower() != _JSON:
                raise NotAWatch(request.subject, f"{kind[:100]} instead of JSON")
            yield _lines(response, request.subject)
        finally:
            response.close()

    async def _once(self, request: Request) -> Answer:
        loop = asyncio.get_running_loop()
        started, status = loop.time(), 0
        timeout = aiohttp.ClientTimeout(total=_CALL_SECONDS, sock_connect=_CONNECT_SECONDS)
        try:
            with _translated(request.subject):
                answer = await _read(await self._send(request, timeout))
            status = answer.status
            if self._clock is not None and answer.moment is not None and answer.is_the_servers:
                self._clock.heard(answer.moment, loop.time() - started)
            return answer
        finally:
            self._observe(request, status, loop.time() - started)

    async def _send(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        settings = self._official.configuration
        headers = {
            "User-Agent": self._address.agent,
            "Accept": _JSON,
            "Content-Type": request.content_type,
        }
        token = await settings.get_api_key_with_prefix("BearerToken", None)
        if token:
            headers["Authorization"] = token
        url = settings.host + request.path + (f"?{urlencode(request.query)}" if request.query else "")
        answered = await self._official.rest_client.request(
            request.method, url, headers=headers, body=request.body, _request_timeout=timeout
        )
        response: aiohttp.ClientResponse = answered.response
        return response

    async def _load(self) -> None:
        settings = await self._address.load()
        self._loaded_at = asyncio.get_running_loop().time()
        former, trust = self._official, _trust_of(settings)
        if former is not None and trust == self._trust:
            # A new token, and its new reader: the former would put its own back. Requests under way continue.
            former.configuration.api_key = settings.api_key
            former.configuration.refresh_api_key_hook = settings.refresh_api_key_hook
            return
        # The environment is asked for a proxy once, not at every request.
        settings.client_session_kwargs = {"trust_env": bool(getproxies())}
        try:
            self._official = official.ApiClient(configuration=settings)
        except OSError as error:  # of which ssl.SSLError is one
            raise Misconfigured(f"cluster {settings.host}", f"its certificates cannot be used: {error}") from error
        self._trust = trust
        if former is not None:
            await former.close()

    async def _renew(self, since: float) -> bool:
        """Reload what we trust and our credentials, unless that was just done; whether they were loaded after
        `since`."""
        async with self._loading:
            if asyncio.get_running_loop().time() - self._loaded_at > _RELOAD_SECONDS:
                await self._load()
            return self._loaded_at > since


def _trust_of(settings: Any) -> _Trust:
    """The server's address and the content of the files: a certificate that is renewed keeps the name of its file."""
    files = (settings.ssl_ca_cert, settings.cert_file, settings.key_file)
    return settings.host, *[_content(file) for file in files]


def _content(file: str | None) -> bytes:
    """Of a file that the configuration names; Misconfigured where it cannot be read."""
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise Misconfigured(f"file {file}", f"it cannot be read: {error.strerror}") from error


def _is_refused_by_tls(failure: Unreachable) -> bool:
    """Whether one side does not believe the other's certificate."""
    error = failure.__cause__
    return isinstance(error, aiohttp.ClientSSLError) or isinstance(error and error.__cause__, ssl.SSLError)


async def _read(response: aiohttp.ClientResponse) -> Answer:
    """The whole body. A body that is no JSON object (a proxy's page) is kept as the message."""
    raw = await response.read()
    try:
        decoded = orjson.loads(raw)
    except orjson.JSONDecodeError:
        decoded = None
    retry_after = response.headers.get("Retry-After", "")
    return Answer(
        status=response.status,
        body=body_of(decoded, raw[:200].decode(errors="replace")),
        retry_after=float(retry_after) if retry_after.isdecimal() else None,
        moment=_moment(response.headers),
    )


def _moment(headers: Mapping[str, str]) -> float | None:
    """When the answer was given; None where it says nothing of that, or was kept by something between us."""
    try:
        return None if "Age" in headers else parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except ValueError:
        return None


async def _lines(response: aiohttp.ClientResponse, subject: str) -> AsyncIterator[bytes]:
    """The lines of a stream; an object of any size may stand on one."""
    rest: list[bytes] = []
    with _translated(subject):
        async for chunk in response.content.iter_any():
            *whole, tail = chunk.split(b"\n")
            for line in whole:
                yield b"".join((*rest, line))
                rest = []
            rest.append(tail)


@contextmanager
def _translated(subject: str) -> Iterator[None]:
    """Silence and broken connections become Unreachable."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unreachable(subject, f"{type(error).__name__}: {error}".rstrip(": ")) from error
