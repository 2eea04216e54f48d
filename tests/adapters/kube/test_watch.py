"""The watch goes on where its stream stopped, lists again where it must, and says when it cannot be trusted."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.connection import ClusterAddress
from dovetail.adapters.kube.watching.thread import WatchThread
from dovetail.adapters.kube.watching.watch import Watch
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.kinds import FREEZE
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.adapters.kubernetes_json.view import CachedView
from dovetail.background.supervised import task_troubles
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.json import Json
from tests.adapters.kube.fake_server import FakeServer, Reply, fake_server, says, streams
from tests.adapters.kube.test_time_objects import PEAK
from tests.adapters.kubernetes_json.kinds_for_tests import NODE, NODE_CLASS, a_thing

PATH = NODE.path


_numbers = itertools.count()


async def _numbered(request: web.Request) -> web.StreamResponse:
    """A gateway's refusal with an id or a time, another one each time."""
    return await says(200, b'{"request": "%d"}\n' % next(_numbers))(request)


NO_WATCH: dict[str, Reply] = {
    "object that is another each time": _numbered,
    "nothing": says(200, b""),
    "page": says(200, b"<html>Sign in</html>"),
    "lines": says(200, b"<html>\nSign in\n</html>\n"),
    "object": says(200, b'{"status": "ok"}'),
    "object on a line": says(200, b'{"status": "ok"}\n'),
    "list": says(200, b'{"kind": "NodeList", "metadata": {"resourceVersion": "9"}, "items": []}\n'),
    "text": says(200, b"ok\n"),
    "an event of something else": says(200, b'{"type": "hello", "object": {}}\n'),
    "a page that does not end": streams(b"<html>\n", kind="text/html"),
}


def a_list(version: int, *items: Json, more: str = "") -> Json:
    meta = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return {"metadata": meta, "items": list(items)}


def added(raw: Json) -> Json:
    return {"type": "ADDED", "object": raw}


def bookmark(version: int) -> Json:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def error(code: object) -> Json:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "set by the test"}}


class Watched:
    """A cache that a watch feeds from the fake server."""

    def __init__(self, server: FakeServer, kinds: tuple[Kind, ...] = (NODE,)) -> None:
        self.cache = Cache(kinds, report=lambda _: None)
        self.watch = Watch(self.cache, Client(ClusterAddress(kubeconfig=server.kubeconfig())))

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(60):  # a crowded machine takes a while between two steps
            while not holds():  # noqa: ASYNC110 - what is waited for is what another task or thread has done
                await asyncio.sleep(0.005)

    def names(self) -> list[str]:
        return sorted(self.cache.objects("Node"))


@asynccontextmanager
async def watching(server: FakeServer, kinds: tuple[Kind, ...] = (NODE,)) -> AsyncIterator[Watched]:
    watched = Watched(server, kinds)
    task = asyncio.create_task(watched.watch.run())
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for delays in ("_DELAYS", "_DELAYS_IN_DOUBT"):
        monkeypatch.setattr(f"dovetail.adapters.kube.watching.watch.{delays}", Backoff(first=0.01, longest=0.02))
    monkeypatch.setattr("dovetail.adapters.kube.watching.watch._REFUSED_SECONDS", 0.01)


def watches(server: FakeServer) -> list[dict[str, str]]:
    return [query for _, _, query, _, _ in server.asked if "watch" in query]


class TestFollowing:
    async def test_a_list_comes_in_pages_and_the_watch_goes_on_from_its_version(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3), more="next")), says(200, a_list(10, a_thing("b", 4))))
            server.on(f"{PATH}?watch", streams(added(a_thing("c", 11))))
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["a", "b", "c"])
                assert watched.watch.problem() == ""

        assert [query.get("continue") for _, _, query, _, _ in server.asked[:2]] == [None, "next"]
        assert watches(server)[0]["resourceVersion"] == "10"
        assert watches(server)[0]["allowWatchBookmarks"] == "true"

    async def test_a_stream_that_ends_is_opened_again_where_it_ended(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(
                f"{PATH}?watch",
                streams(added(a_thing("a", 11)), bookmark(15), hang=False),
                streams(added(a_thing("b", 16))),
            )
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["a", "b"])

        assert [query["resourceVersion"] for query in watches(server)] == ["10", "15"]
        assert [path for _, path, query, _, _ in server.asked if "watch" not in query] == [PATH]

    async def test_an_event_may_come_in_pieces(self, tmp_path: Path) -> None:
        whole = orjson.dumps(added(a_thing("a", 11))) + b"\n" + orjson.dumps(added(a_thing("b", 12))) + b"\n"
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams(whole[:20], whole[20:90], whole[90:]))
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["a", "b"])

    async def test_a_bookmark_moves_what_has_been_seen(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams(bookmark(99)))
            async with watching(server) as watched:
                await watched.until(lambda: watched.cache.snapshot(0.0).seen["Node"] == 99)

    async def test_an_unreadable_object_stops_nothing(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("bad", 3, "nowhere"))))
            server.on(f"{PATH}?watch", streams(added({"metadata": {"resourceVersion": "11"}}), added(a_thing("b", 12))))
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["b"])
                assert "bad" in [u.name for u in watched.cache.unreadable()]


class TestListingAgain:
    @pytest.mark.parametrize("how", ["at the opening", "in the stream", "going back"])
    async def test_a_version_that_is_no_longer_kept_means_listing_again(self, tmp_path: Path, how: str) -> None:
        first = {
            "at the opening": says(410, {"message": "too old"}),
            "in the stream": streams(error(410)),
            "going back": streams(bookmark(4)),
        }[how]
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3))), says(200, a_list(20, a_thing("b", 14))))
            server.on(f"{PATH}?watch", first, streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["b"] and len(watches(server)) == 2)

        assert watches(server)[-1]["resourceVersion"] == "20"

    async def test_a_server_that_went_back_is_read_afresh_though_it_has_caught_up_by_the_list(
        self, tmp_path: Path
    ) -> None:
        """The same object at the same version may have another content then."""
        async with fake_server(tmp_path) as server:
            before, after = a_list(10, a_thing("a", 9, "before")), a_list(12, a_thing("a", 9, "after"))
            server.on(PATH, says(200, before), says(200, after))
            server.on(f"{PATH}?watch", streams(bookmark(4)), streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.cache.indexed("Node", "after"))

    @pytest.mark.parametrize("how", ["at the opening", "in the stream"])
    async def test_versions_that_expire_at_once_are_listed_ever_more_slowly(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        """Five full lists a second of each kind are what a server that is ill can bear least."""
        pauses = list[float]()

        def counted(_least: float, _most: float) -> float:
            pauses.append(0.0)
            return 0.0

        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            expired = says(410, {"message": "too old"}) if how == "at the opening" else streams(error(410))
            server.on(f"{PATH}?watch", *[expired] * 12, streams())
            monkeypatch.setattr("dovetail.adapters.kube.watching.watch.random.uniform", counted)
            async with watching(server) as watched:
                await watched.until(lambda: len(watches(server)) == 13 and not watched.watch.problem())

        assert len(pauses) == 12, "each was waited for"

    async def test_a_list_that_expires_half_way_is_begun_again(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(
                PATH,
                says(200, a_list(10, a_thing("a", 3), more="next")),
                says(410, {"message": "continue token too old"}),
                says(200, a_list(20, a_thing("b", 14))),
            )
            server.on(f"{PATH}?watch", streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["b"])

    @pytest.mark.parametrize("said", [error(500), error("busy"), {"type": "ERROR", "object": "busy"}])
    async def test_another_error_in_the_stream_opens_it_again_without_a_list(self, tmp_path: Path, said: Json) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams(said), streams(added(a_thing("a", 11))))
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["a"])

        assert [query["resourceVersion"] for query in watches(server)] == ["10", "10"]
        assert len(server.asked) == 3


class TestTrust:
    async def test_it_is_not_trusted_before_every_kind_has_been_listed(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(503, {"message": "starting"}))
            async with watching(server) as watched:
                await watched.until(lambda: "starting" in watched.watch.problem())
                assert watched.watch.problem() == "Node: Node: starting"

    async def test_it_is_not_trusted_while_the_connection_is_broken_and_is_again_afterwards(
        self, tmp_path: Path
    ) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.watch.problem() == "")
                revision = watched.cache.revision
                server.on(f"{PATH}?watch", says(503, {"message": "away"}))
                watched.watch._streams[0].health.broke("connection lost")
                assert watched.watch.problem() == "Node: the watch is broken: connection lost"

                server.on(f"{PATH}?watch", streams())
                watched.watch._streams[0].health.opened()

                assert (watched.watch.problem(), watched.cache.revision >= revision) == ("", True)

    async def test_silence_is_not_trusted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.watch.problem() == "")
                monkeypatch.setattr("dovetail.adapters.kube.watching.health.SILENCE_SECONDS", 0.05)

                await watched.until(lambda: "silent" in watched.watch.problem())

    async def test_a_silent_connection_is_given_up_and_opened_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dovetail.adapters.kube.watching.watch.SILENCE_SECONDS", 0.1)
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams(), streams(added(a_thing("a", 11))))
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["a"])

    async def test_a_stream_that_brought_nothing_until_it_was_given_up_is_listed_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A gateway may let watches begin and pass nothing of them on."""
        monkeypatch.setattr("dovetail.adapters.kube.watching.watch.SILENCE_SECONDS", 0.1)
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3))), says(200, a_list(20, a_thing("b", 14))))
            server.on(f"{PATH}?watch", streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["b"])

    async def test_streams_that_bring_nothing_and_end_before_they_are_silent_for_long_are_listed_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A gateway may cut what it passes nothing of after half a minute: each stream alone would be silent for too
        short a time to tell."""
        monkeypatch.setattr("dovetail.adapters.kube.watching.watch.SILENCE_SECONDS", 0.5)
        monkeypatch.setattr("dovetail.adapters.kube.watching.watch._SHORTEST_LIFE", 0.01)
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3))), says(200, a_list(20, a_thing("b", 14))))
            server.on(f"{PATH}?watch", streams(hang=False, lasts=0.1))
            async with watching(server) as watched:
                await watched.until(lambda: watched.names() == ["b"])
                assert len(watches(server)) > 3

    @pytest.mark.parametrize("answer", NO_WATCH.values(), ids=NO_WATCH)
    async def test_watches_that_a_gateway_answers_are_not_trusted_and_the_kind_is_listed_again_until_one_is_one(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Reply
    ) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3))), says(200, a_list(20, a_thing("b", 14))))
            server.on(f"{PATH}?watch", answer)
            with caplog.at_level(logging.INFO):
                async with watching(server) as watched:
                    view = CachedView(watched.cache, time.time, watched.watch.problem_of)
                    await watched.until(lambda: watched.names() == ["b"])
                    await watched.until(view.stale)
                    asked, seen = len(watches(server)), set[str]()
                    while len(watches(server)) < asked + 10:
                        seen.add(view.stale().get("Node", ""))
                        await asyncio.sleep(0.002)
                    assert len(seen) == 1 and "not a watch of the API server" in seen.pop()

                    server.on(f"{PATH}?watch", streams())
                    await watched.until(lambda: not view.stale())

        warned, recovered = [record.getMessage() for record in caplog.records if record.name.startswith("dovetail")]
        assert "not a watch of the API server" in warned
        assert recovered == "Node: works again"

    async def test_a_kind_in_doubt_is_trusted_at_its_first_event(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", NO_WATCH["page"], streams(bookmark(11)))
            async with watching(server) as watched:
                await watched.until(lambda: watched.cache.snapshot(0.0).seen["Node"] == 11)
                assert watched.watch.problem() == ""

    @pytest.mark.parametrize(
        ("answers", "life"),
        [
            ([streams(hang=False, lasts=0.1)] * 12, 0.02),  # idle until the time that was asked for is over
            ([streams(bookmark(10), hang=False)] * 12, 1.0),
            ([*[streams(hang=False)] * 4, streams(bookmark(10), hang=False)] * 3, 1.0),  # servers that restart in turn
        ],
        ids=["idle", "busy", "restarting"],
    )
    async def test_a_server_that_ends_its_watches_is_not_doubted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Reply], life: float
    ) -> None:
        monkeypatch.setattr("dovetail.adapters.kube.watching.watch._SHORTEST_LIFE", life)
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", *answers, streams())
            async with watching(server) as watched:
                await watched.until(lambda: len(watches(server)) > len(answers))
                assert watched.watch.problem() == ""

        assert [path for _, path, query, _, _ in server.asked if "watch" not in query] == [PATH]

    async def test_a_stopped_watch_is_not_trusted(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams())
            async with watching(server) as watched:
                await watched.until(lambda: watched.watch.problem() == "")

            assert watched.watch.problem() == "the watch has been stopped"


class TestWhatIsMissing:
    async def test_a_kind_that_is_not_installed_is_reported_once_and_found_when_it_is(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with fake_server(tmp_path) as server:
            with caplog.at_level(logging.WARNING):
                async with watching(server) as watched:
                    await watched.until(lambda: len(server.asked) > 5)
                    problem = watched.watch.problem()
                    server.on(PATH, says(200, a_list(10, a_thing("a", 3))))
                    server.on(f"{PATH}?watch", streams())
                    await watched.until(lambda: watched.watch.problem() == "")

        line = f"Node is not installed: the server has nothing at {PATH}"
        assert problem == f"Node: {line}"
        assert [record.getMessage() for record in caplog.records] == [line]

    async def test_an_optional_kind_that_is_not_installed_leaves_the_view_usable(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.serves()
            server.on(PATH, says(200, a_list(10)))
            server.on(f"{PATH}?watch", streams())
            async with watching(server, (NODE, NODE_CLASS)) as watched:
                await watched.until(lambda: watched.watch.problem() == "")

                assert watched.watch.troubles() == (
                    f"EC2NodeClass is not installed: the server has nothing at {NODE_CLASS.path}",
                )

    async def test_an_optional_kind_is_found_once_it_is_installed(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.serves()
            async with watching(server, (NODE_CLASS,)) as watched:
                await watched.until(lambda: watched.watch.troubles() and watched.watch.problem() == "")
                server.on(NODE_CLASS.path, says(200, a_list(10, a_thing("default", 3))))
                server.on(f"{NODE_CLASS.path}?watch", streams())
                await watched.until(lambda: watched.cache.objects("EC2NodeClass") and not watched.watch.troubles())

    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (404, b"404 page not found"),
            (503, {"kind": "Status", "message": "away"}),
            (200, b"<html>Sign in</html>"),
            (200, {"kind": "APIGroupList", "groups": []}),
            (200, {"kind": "APIGroupList"}),
            (200, {"kind": "Status", "groups": [{"versions": [{"groupVersion": "apps/v1"}]}]}),
        ],
    )
    async def test_a_404_alone_does_not_make_an_optional_kind_absent(
        self, tmp_path: Path, status: int, body: Json | bytes
    ) -> None:
        async with fake_server(tmp_path) as server:
            server.on("/apis", says(status, body))
            async with watching(server, (NODE_CLASS,)) as watched:
                await watched.until(lambda: watched.watch.troubles() and len(server.asked) > 5)
                assert watched.watch.problem() == (
                    "EC2NodeClass: whether EC2NodeClass is installed is not known: "
                    f"the server has nothing at {NODE_CLASS.path}, and does not say so"
                )

    async def test_a_kind_that_discovery_names_is_not_absent_for_a_404(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.serves(NODE_CLASS.path)
            async with watching(server, (NODE_CLASS,)) as watched:
                await watched.until(lambda: "does not say so" in watched.watch.problem())
                server.serves("/apis/karpenter.k8s.aws/v1/others")
                await watched.until(lambda: watched.watch.problem() == "")
                server.on("/apis", says(404))
                await watched.until(lambda: "does not say so" in watched.watch.problem())

    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (403, {"kind": "Status", "reason": "Forbidden", "message": "may not list"}),
            (500, {"kind": "Status", "reason": "InternalError", "message": "conversion failed"}),
            (429, {"kind": "Status", "reason": "TooManyRequests", "message": "later"}),
            (200, b"<html>Sign in</html>"),
        ],
    )
    async def test_a_kind_that_was_absent_may_be_there_once_the_server_says_anything_else(
        self, tmp_path: Path, status: int, body: Json | bytes
    ) -> None:
        """Else a Freeze of a kind that was installed after the worker had started would stop nothing until it can be
        listed, and nobody would be told."""
        async with fake_server(tmp_path) as server:
            server.serves()
            async with watching(server, (FREEZE,)) as watched:
                view = CachedView(watched.cache, time.time, watched.watch.problem_of)
                await watched.until(lambda: watched.watch.troubles() and watched.watch.problem() == "")
                assert not view.stale()

                server.on(FREEZE.path, says(status, body))
                await watched.until(lambda: "is not installed" not in watched.watch.troubles()[0])
                assert view.stale()["Freeze"] == f"Freeze: {watched.watch.troubles()[0]}"

                server.on(FREEZE.path, says(200, a_list(10, PEAK)))
                server.on(f"{FREEZE.path}?watch", streams())
                await watched.until(lambda: not view.stale())
                assert list(watched.cache.objects("Freeze")) == ["peak"]

    async def test_an_optional_kind_that_was_there_keeps_its_objects_and_is_not_trusted(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(NODE_CLASS.path, says(200, a_list(10, a_thing("default", 3))))
            server.on(f"{NODE_CLASS.path}?watch", streams(error(410)))
            async with watching(server, (NODE_CLASS,)) as watched:
                await watched.until(lambda: watched.cache.objects("EC2NodeClass"))
                server.serves()
                server.on(NODE_CLASS.path, says(404))

                await watched.until(lambda: "was installed, and now" in watched.watch.problem())
                assert list(watched.cache.objects("EC2NodeClass")) == ["default"]

                server.on("/apis", says(404))  # no break in what discovery says, or it begins anew
                await watched.until(lambda: "does not say so" in watched.watch.problem())
                assert list(watched.cache.objects("EC2NodeClass")) == ["default"]

    async def test_a_kind_that_was_removed_is_absent_once_discovery_has_said_so_for_minutes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else a definition that somebody removes on purpose stops all planning until each worker is restarted."""
        async with fake_server(tmp_path) as server:
            server.on(NODE_CLASS.path, says(200, a_list(10, a_thing("default", 3))))
            server.on(f"{NODE_CLASS.path}?watch", streams(error(410)))
            async with watching(server, (NODE_CLASS,)) as watched:
                await watched.until(lambda: watched.cache.objects("EC2NodeClass"))
                server.serves()
                server.on(NODE_CLASS.path, says(404))
                await watched.until(lambda: "was installed, and now" in watched.watch.problem())

                monkeypatch.setattr("dovetail.adapters.kube.watching.watch.REMOVED_SECONDS", 0.0)
                await watched.until(lambda: watched.watch.problem() == "")
                assert not watched.cache.objects("EC2NodeClass") and not watched.watch.was_listed("EC2NodeClass")

    async def test_a_missing_right_is_named(self, tmp_path: Path) -> None:
        message = 'nodes is forbidden: User "x" cannot list resource "nodes" in API group "" at the cluster scope'
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(403, {"message": message}))
            async with watching(server) as watched:
                await watched.until(lambda: watched.watch.troubles() == (f"Node: {message}",))


class TestOwnThread:
    async def test_a_watch_in_a_thread_feeds_the_same_cache_and_stops_when_asked(self, tmp_path: Path) -> None:
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3))))
            server.on(f"{PATH}?watch", streams())
            watched = Watched(server)
            thread = WatchThread(watched.watch)
            thread.start()
            await watched.until(lambda: watched.names() == ["a"] and watched.watch.problem() == "")

            await thread.stop()

            assert watched.watch.problem() == "the watch has been stopped"

    async def test_a_watch_that_fails_unexpectedly_is_begun_anew_and_trusted_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dovetail.background.supervised.PAUSES", Backoff(first=0.01, longest=60.0))
        async with fake_server(tmp_path) as server:
            server.on(PATH, says(200, a_list(10, a_thing("a", 3))))
            server.on(f"{PATH}?watch", streams())
            watched = Watched(server)
            opened = watched.watch._client.open
            failures = iter([KeyError("a kubeconfig that is being written")])

            async def fails_once() -> None:
                failure = next(failures, None)
                if failure is not None:
                    raise failure
                await opened()

            monkeypatch.setattr(watched.watch._client, "open", fails_once)
            thread = WatchThread(watched.watch)
            thread.start()
            await watched.until(lambda: watched.names() == ["a"] and watched.watch.problem() == "")
            assert [line for line in task_troubles() if line.startswith("watch has failed 1 times")] != []

            await thread.stop()
            assert watched.watch.problem() == "the watch has been stopped"
