"""Stands before an HTTP server, and disturbs the requests that its faults name.

Plain HTTP towards the worker; towards the server whatever the server speaks. Answers are passed on as they arrive, so
watches work. A stream that was opened before a fault began is broken off if it matches: a sick server is sick for
connected clients as well.
"""

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from testbed.faults.fault import Fault, Sickness

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "upgrade"})


class HttpProxy(Sickness):
    """One proxy before one server."""

    def __init__(self, server: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.server, self._tls = server.rstrip("/"), tls
        self.url = ""
        self._open: dict[asyncio.Task[None], web.BaseRequest] = {}  # answers under way
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.ServerRunner | None = None

    @classmethod
    async def to(cls, server: str, tls: ssl.SSLContext | None = None) -> "HttpProxy":
        """A proxy that listens on a port of its own."""
        proxy = cls(server, tls)
        proxy._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls if tls is not None else True), auto_decompress=False
        )
        proxy._runner = web.ServerRunner(web.Server(proxy._answer), shutdown_timeout=0.1)
        await proxy._runner.setup()
        site = web.TCPSite(proxy._runner, "127.0.0.1", 0)
        await site.start()
        proxy.url = f"http://127.0.0.1:{proxy._runner.addresses[0][1]}"
        return proxy

    @classmethod
    async def to_api_server(cls, kubeconfig: Path) -> "HttpProxy":
        """Before the API server, whose user is the one of that kubeconfig."""
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        tls = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            tls.load_cert_chain(pair.name)
        return await cls.to(cluster["server"], tls)

    def kubeconfig(self, folder: Path) -> Path:
        """A kubeconfig that leads a client here."""
        path = folder / f"proxy-{self.url.rpartition(':')[2]}.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        }
        path.write_text(json.dumps(content))
        return path

    async def close(self) -> None:
        """Break off everything in progress, and stop."""
        for task in list(self._open):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    @contextmanager
    def sick(self, *faults: Fault) -> Iterator[None]:
        """These faults are in force within the block; streams that match are broken off at its beginning."""
        with super().sick(*faults):
            for task, request in list(self._open.items()):
                if self.met_by(request.method, request.path_qs) is not None:
                    task.cancel()
            yield

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        fault = self.met_by(request.method, request.path_qs)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            if fault.hang:
                await asyncio.Event().wait()
            if fault.drop:
                return _broken_off(request)
            if fault.status:
                return _refusal(fault)
        return await self._pass_on(request, None if fault is None else fault.cut_after)

    async def _pass_on(self, request: web.BaseRequest, cut_after: int | None) -> web.StreamResponse:
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP | {"host"}}
        body = await request.read()
        async with self._session.request(
            request.method,
            f"{self.server}{request.path_qs}",
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            copying = asyncio.create_task(_copy(answer, response, cut_after))
            self._open[copying] = request
            try:
                await copying
            except (asyncio.CancelledError, aiohttp.ClientError, ConnectionError):
                _broken_off(request)
            finally:
                copying.cancel()
                del self._open[copying]
            return response


async def _copy(answer: aiohttp.ClientResponse, response: web.StreamResponse, cut_after: int | None) -> None:
    """The server's answer as it comes, or so many bytes of it."""
    passed = 0
    async for chunk in answer.content.iter_any():
        if cut_after is not None and passed + len(chunk) > cut_after:
            await response.write(chunk[: cut_after - passed])
            raise ConnectionResetError("cut off by a fault")
        passed += len(chunk)
        await response.write(chunk)
    await response.write_eof()


def _broken_off(request: web.BaseRequest) -> web.Response:
    """Close the connection without an answer; the returned value reaches nobody."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _refusal(fault: Fault) -> web.Response:
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    body = {"kind": "Status", "status": "Failure", "code": fault.status, "message": "a fault of the test bed"}
    return web.json_response(body, status=fault.status, headers=headers)
