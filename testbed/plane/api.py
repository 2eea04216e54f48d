"""The API server over plain HTTP: a method, a path, a body in, a status and JSON out.

It knows no kinds and raises for no status, so a test sees exactly what the server answered. It is not part of the
product, which uses dovetail/adapters/kube.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """The server's answer. `body` is empty if it was not JSON."""

    status: int
    body: dict[str, Any]
    text: str


class ApiClient:
    """One identity's connection to one plane. Use it as an async context manager."""

    def __init__(self, kubeconfig: Path, user_agent: str = "testbed") -> None:
        self.server, self._ssl = _read_kubeconfig(kubeconfig)
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._ssl, limit=50))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, **said: str) -> ApiResponse:
        """`said`: headers."""
        return await self._request("GET", path, None, None, said)

    async def post(self, path: str, body: dict[str, Any]) -> ApiResponse:
        return await self._request("POST", path, body, "application/json")

    async def put(self, path: str, body: dict[str, Any]) -> ApiResponse:
        return await self._request("PUT", path, body, "application/json")

    async def patch(self, path: str, body: Any, kind: str = "merge") -> ApiResponse:
        return await self._request("PATCH", path, body, PATCH_TYPES[kind])

    async def delete(self, path: str, body: dict[str, Any] | None = None) -> ApiResponse:
        return await self._request("DELETE", path, body, "application/json")

    async def wait_for(self, path: str, condition: Callable[[ApiResponse], bool], seconds: float = 30.0) -> ApiResponse:
        """Look until the answer is as wanted; TimeoutError with the last answer if it never is."""
        answer = await self.get(path)
        try:
            async with asyncio.timeout(seconds):
                while not condition(answer):
                    await asyncio.sleep(0.05)
                    answer = await self.get(path)
        except TimeoutError as error:
            raise TimeoutError(f"{path} is not as it should be after {seconds} s: {answer.text[:2000]}") from error
        return answer

    async def _request(
        self, method: str, path: str, body: Any, content_type: str | None, said: Mapping[str, str] | None = None
    ) -> ApiResponse:
        assert self._session is not None, "use ApiClient as an async context manager"
        headers = {**self._headers, **({"Content-Type": content_type} if content_type else {}), **(said or {})}
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, self.server + path, data=data, headers=headers) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json"
            return ApiResponse(status=answer.status, body=json.loads(text) if is_json else {}, text=text)


def _read_kubeconfig(path: Path) -> tuple[str, ssl.SSLContext]:
    """Only the kind that this test bed writes: one cluster, one user, certificates inside."""
    content = json.loads(path.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as both:  # the ssl module takes a client's certificate only from a file
        both.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        both.flush()
        context.load_cert_chain(both.name)
    return cluster["server"], context
