"""Prometheus as it is asked: by its documented API, with a token, and never for longer than the time that it has."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from dovetail.adapters.prometheus.client import Prometheus, samples_of
from dovetail.model.own.gates import Series
from dovetail.ports.failures import Failure, Forbidden, Refused, Throttled, Unauthenticated, Unreachable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def body(data: object, **more: object) -> bytes:
    return json.dumps({"status": "success", "data": data, **more}).encode()


def vector(*samples: tuple[dict[str, str], str]) -> object:
    return {"resultType": "vector", "result": [{"metric": m, "value": [1.5, v]} for m, v in samples]}


@pytest.mark.parametrize(
    ("data", "samples"),
    [
        (vector(), ()),
        (
            vector(({"b": "2", "a": "1"}, "0.5"), ({}, "+Inf")),
            (Series(labels=(("a", "1"), ("b", "2")), value=0.5), Series(value=float("inf"))),
        ),
        ({"resultType": "scalar", "result": [1.5, "7"]}, (Series(value=7.0),)),
    ],
)
def test_an_answer_is_series_with_their_values(data: object, samples: tuple[Series, ...]) -> None:
    assert samples_of(200, body(data)) == samples


def test_what_is_no_number_is_none() -> None:
    [nan] = samples_of(200, body(vector(({}, "NaN"))))
    [histogram] = samples_of(
        200, body({"resultType": "vector", "result": [{"metric": {}, "histogram": [1, {"count": "1"}]}]})
    )
    assert nan.value != nan.value and histogram.value != histogram.value


@pytest.mark.parametrize(
    ("status", "raw", "kind", "words"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', Refused, "parse error (400)"),
        (422, b'{"status":"error","errorType":"execution","error":"too many"}', Refused, "too many (422)"),
        (401, b"", Unauthenticated, "(401)"),
        (403, b"<html>", Forbidden, "not in JSON (403)"),
        (429, b"{}", Throttled, "(429)"),
        (503, b"", Unreachable, "(503)"),
        (302, b"", Unreachable, "(302)"),
        (200, b"<html>a login page</html>", Unreachable, "not in JSON (200)"),
        (200, b"[]", Unreachable, "not in JSON (200)"),
        (200, b'{"status":"error","error":"timeout"}', Unreachable, "timeout"),
        (200, b'{"status":"success"}', Unreachable, "cannot be understood"),
        (200, body({"resultType": "matrix", "result": []}), Unreachable, "a matrix is no value of now"),
        (200, body({"resultType": "vector", "result": [{"metric": {}}]}), None, ""),
        (200, body({"resultType": "vector", "result": [{"metric": {}, "value": [1, 2]}]}), Unreachable, "no text"),
        (200, body({"resultType": "vector", "result": 7}), Unreachable, "cannot be understood"),
        (200, body(vector(({}, "1")), warnings=["a store did not answer"]), Unreachable, "it warns: a store"),
        (200, body(vector(({}, "1")), warnings=[]), None, ""),
    ],
)
def test_what_is_no_whole_answer_is_a_failure(status: int, raw: bytes, kind: type[Failure] | None, words: str) -> None:
    if kind is None:
        assert len(samples_of(status, raw)) == 1
        return
    with pytest.raises(kind) as failed:
        samples_of(status, raw)
    assert words in str(failed.value) and str(failed.value).isprintable()


async def test_it_is_asked_below_its_address_with_the_token_of_now(tmp_path: Path) -> None:
    seen: list[tuple[str, str, str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        form = await request.post()
        said = request.headers.get("Authorization", ""), str(form["query"])
        seen.append((request.method, request.path, *said))
        return web.Response(body=body(vector(({}, "1"))))

    token = tmp_path / "token"
    async with answering(handler) as url:
        asked = Prometheus(url=f"{url}/tenant/", agent="dovetail/test", token=token)
        for secret in ("one", "two"):
            token.write_text(f"{secret}\n")
            assert await asked.ask('up{job="a&b"}') == (Series(value=1.0),)
        token.unlink()
        with pytest.raises(Unreachable, match="token"):
            await asked.ask("up")

    question = ("POST", "/tenant/api/v1/query")
    assert seen == [(*question, f"Bearer {secret}", 'up{job="a&b"}') for secret in ("one", "two")]


async def test_one_that_never_answers_costs_the_time_that_it_has_and_no_more() -> None:
    released = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response(body=body(vector()))

    async with answering(handler) as url:
        with pytest.raises(Unreachable, match=r"did not answer within 0\.2 s"):
            await Prometheus(url=url, agent="dovetail/test", seconds=0.2).ask("up")
        released.set()


async def test_a_redirect_is_not_followed_and_a_flood_is_not_read(tmp_path: Path) -> None:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        paths.append(request.path)
        if request.path.startswith("/flood"):
            return web.Response(body=b" " * (2 * 1024 * 1024))
        raise web.HTTPTemporaryRedirect("/elsewhere")

    async with answering(handler) as url:
        with pytest.raises(Unreachable, match="307"):
            await Prometheus(url=url, agent="dovetail/test").ask("up")
        with pytest.raises(Unreachable, match="longer than a megabyte"):
            await Prometheus(url=f"{url}/flood", agent="dovetail/test").ask("up")
    assert paths == ["/api/v1/query", "/flood/api/v1/query"]


async def test_nobody_there_and_no_certificate_are_said(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="Connect"):
        await Prometheus(url="http://127.0.0.1:9", agent="dovetail/test").ask("up")
    with pytest.raises(Unreachable, match="FileNotFoundError"):
        await Prometheus(url="https://127.0.0.1:9", agent="dovetail/test", authority=tmp_path / "ca").ask("up")
