"""Queries the Prometheus of the worker's settings, or another server with its HTTP API: Thanos, Mimir, VictoriaMetrics.

One instant query at a time: `POST /api/v1/query` below the address. It follows no redirect, so that the token reaches
no other server; it reads a megabyte at most; the token and the certificates are read again for each query. An answer
with a warning may be only part of the truth, and counts as none.
"""

import asyncio
import math
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import getproxies

import aiohttp
import orjson

from dovetail.model.own.gates import Series
from dovetail.model.values.quoting import one_line
from dovetail.ports.failures import Failure, Forbidden, Refused, Throttled, Unauthenticated, Unreachable

SECONDS: Final = 10.0  # of a question, all in all
_CONNECT_SECONDS: Final = 5.0
_MOST_BYTES: Final = 1024 * 1024
_SUBJECT: Final = "Prometheus"
_KINDS: Final[dict[int, type[Failure]]] = {
    401: Unauthenticated,
    403: Forbidden,
    400: Refused,
    422: Refused,
    429: Throttled,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """How it is queried. `token`: a file with a bearer token; `authority`: a file with the certificates that identify
    it, instead of the system's."""

    url: str
    agent: str
    token: Path | None = None
    authority: Path | None = None
    seconds: float = SECONDS

    async def ask(self, expression: str) -> tuple[Series, ...]:
        """The expression's current value."""
        try:
            async with asyncio.timeout(self.seconds):
                status, raw = await self._post(expression)
        except TimeoutError:
            raise Unreachable(_SUBJECT, f"it did not answer within {self.seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(_SUBJECT, one_line(f"{type(error).__name__}: {error}")) from error
        return samples_of(status, raw)

    async def _post(self, expression: str) -> tuple[int, bytes]:
        headers = {"User-Agent": self.agent, "Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.read_text().strip()}"
        verified = ssl.create_default_context(cafile=self.authority) if self.authority is not None else True
        url = f"{self.url.rstrip('/')}/api/v1/query"
        asked = {"query": expression, "timeout": f"{self.seconds:g}s"}
        timeout = aiohttp.ClientTimeout(total=self.seconds, sock_connect=_CONNECT_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=bool(getproxies())) as session,
            session.post(url, data=asked, headers=headers, ssl=verified, allow_redirects=False) as response,
        ):
            return response.status, await _limited(response.content)


async def _limited(content: aiohttp.StreamReader) -> bytes:
    parts, size = [], 0
    async for part in content.iter_chunked(65_536):
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise ValueError("the answer is longer than a megabyte")
    return b"".join(parts)


def samples_of(status: int, raw: bytes) -> tuple[Series, ...]:
    """The samples of an answer; a failure if it is not a valid answer, or has a warning."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise _failure(status, "the answer is not in JSON")
    if status != 200 or body.get("status") != "success":
        raise _failure(status, str(body.get("error") or body.get("message") or "it says no more"))
    if body.get("warnings"):
        raise Unreachable(_SUBJECT, one_line(f"it warns: {body['warnings'][0]}"))
    try:
        return _samples(body["data"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Unreachable(
            _SUBJECT, one_line(f"its answer cannot be understood: {type(error).__name__} {error}")
        ) from None


def _samples(data: Any) -> tuple[Series, ...]:
    kind, result = data["resultType"], data["result"]
    if kind == "scalar":
        return (Series(value=_number(result[1])),)
    if kind != "vector":
        raise ValueError(f"a {kind} is no value of now")
    return tuple(_sample(each) for each in result)


def _sample(each: Any) -> Series:
    labels = tuple(sorted((str(key), str(value)) for key, value in each["metric"].items()))
    if "value" not in each:  # a native histogram has none
        return Series(labels=labels, value=math.nan)
    return Series(labels=labels, value=_number(each["value"][1]))


def _number(text: Any) -> float:
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no text of a number")
    return float(text)  # NaN, +Inf and -Inf too


def _failure(status: int, words: str) -> Failure:
    return _KINDS.get(status, Unreachable)(_SUBJECT, one_line(f"{words} ({status})"))
