"""Feeds the cache: one list and one endless watch per kind.

Runs in a thread of its own or on the worker's event loop. A stream continues from the last version it has seen; it
lists again if that version is no longer kept (410), if its streams have brought nothing for three minutes, and if
versions have become older, as after restoring the server from a backup: at once, but ever more slowly if the next
stream fails too, because a whole list is the most expensive request to a server in trouble. What does not work is
logged once, in one line per kind, and always retried: a definition may be installed or a right granted at any time.

A gateway before the server may answer the watches in its place, with a page or with nothing, and still pass lists on.
Such a kind is not trusted and is listed again with every try, until a stream brings an event or stays open. A server
that restarts or ends its idle streams does so a few times, not again and again at once.
"""

import asyncio
import logging
import random
from collections.abc import Iterable
from typing import Final

import orjson

from dovetail.adapters.kube.client import Client
from dovetail.adapters.kube.discovery import is_absent
from dovetail.adapters.kube.failures import Answer, Expired, NotAWatch, NotServed, body_of, failure_of
from dovetail.adapters.kube.paging import pages
from dovetail.adapters.kube.requests import Request
from dovetail.adapters.kube.watching.health import SILENCE_SECONDS, StreamHealth
from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.adapters.kubernetes_json.store import Kind
from dovetail.model.values.backoff import Backoff
from dovetail.ports.failures import Failure, Forbidden

_log = logging.getLogger(__name__)

# How long the server is asked to keep a stream open: a random time, so that not all streams reopen at one moment.
_SHORTEST_STREAM: Final = 300
_LONGEST_STREAM: Final = 600

_SHORTEST_LIFE: Final = 1.0  # a stream that ends sooner was cut by something in between: it is reopened after a delay

_IN_VAIN: Final = 5  # as many in a row that ended so and brought nothing were no watches: after 2 to 5 s

_DELAYS: Final = Backoff(first=0.2, longest=10.0)
_DELAYS_IN_DOUBT: Final = Backoff(first=0.2, longest=30.0)  # of a kind that is listed with every try
REMOVED_SECONDS: Final = 300.0  # a kind that was there and is not installed any more, by the server's own discovery
_REFUSED_SECONDS: Final = 5.0  # between tries where a definition is not installed or a right not granted


class Stream:
    """The list and the watch of one kind."""

    def __init__(self, kind: Kind, cache: Cache, client: Client) -> None:
        self.health = StreamHealth(kind.name)
        self._kind = kind
        self._cache = cache
        self._client = client
        self._version = 0  # to continue from; 0: list first
        self._delay = _DELAYS.first
        self._opened_at: float | None = None  # of the last stream that was open, until one has expired
        self._news_at = 0.0  # when a list or an event last came
        self._went_back = False  # the server has, since the last list
        self._in_vain = 0  # streams in a row that were opened, did not last and brought nothing

    async def run(self) -> None:
        while True:
            try:
                await self._list_and_watch()
            except Expired as expired:
                _log.info("%s: listing again", expired)
                self._version = 0
                if not self._has_lasted():
                    self._broke(str(expired))
                    await self._back_off()
            except (NotServed, Forbidden) as failure:
                await self._refused(failure)
                await asyncio.sleep(_REFUSED_SECONDS)
            except Failure as failure:
                self.health.refused = False
                if isinstance(failure, NotAWatch):
                    self._version, self._in_vain = 0, _IN_VAIN
                self._broke(str(failure))
                await self._back_off()
            except Exception as error:  # a bug of ours must not leave a cache that is trusted and no longer fed
                _log.exception("the watch of %s failed", self._kind.name)
                self._version = 0
                self._broke(f"{type(error).__name__}: {error}")
                await self._back_off()

    def _has_lasted(self) -> bool:
        """Whether a stream stayed open for a while since the last one expired."""
        opened_at, self._opened_at = self._opened_at, None
        if opened_at is None or asyncio.get_running_loop().time() - opened_at < _SHORTEST_LIFE:
            return False
        self._delay = _DELAYS.first
        return True

    async def _list_and_watch(self) -> None:
        if not self._version:
            self._version = await self._list()
            self.health.listed, self.health.absent = True, False
        opened_at = asyncio.get_running_loop().time()
        await self._watch()
        if self._in_vain >= _IN_VAIN:
            raise NotAWatch(self._kind.name, "it ends at once and brings nothing, again and again")
        self.health.ended()
        if asyncio.get_running_loop().time() - opened_at < _SHORTEST_LIFE:
            await self._back_off()
        else:
            self._delay = _DELAYS.first

    async def _list(self) -> int:
        listing = self._cache.listing(self._kind.name, went_back=self._went_back)
        version = 0
        async for page in pages(self._client, self._kind.path, self._kind.name):
            version = version or page.version
            for raw in page.items:
                listing.add(raw, version)
        listing.finish(version)
        self._news_at, self._went_back = asyncio.get_running_loop().time(), False
        return version

    async def _watch(self) -> None:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self._version),
            "timeoutSeconds": str(random.randint(_SHORTEST_STREAM, _LONGEST_STREAM)),
        }
        request = Request(method="GET", path=self._kind.path, subject=self._kind.name, query=query)
        loop = asyncio.get_running_loop()
        async with self._client.stream(request, SILENCE_SECONDS) as lines:
            self._opened_at = opened_at = loop.time()
            if self._in_vain < _IN_VAIN:
                self._opened()
            self._in_vain += 1
            lasting = loop.call_later(_SHORTEST_LIFE, self._is_a_watch)
            try:
                async for line in lines:
                    if line.strip():
                        self._take(line)
            finally:
                lasting.cancel()
                if self._news_at < opened_at and loop.time() - self._news_at > 0.9 * SILENCE_SECONDS:
                    self._version = 0  # a server sends bookmarks: what is between us may let nothing through

    def _is_a_watch(self) -> None:
        """The stream has lasted or brought something."""
        self._in_vain = 0
        if not self.health.connected:
            self._opened()

    def _take(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, raw = event["type"], event["object"]
            version = 0 if kind == "ERROR" else int(raw["metadata"]["resourceVersion"])
        except (ValueError, LookupError, TypeError):
            raise NotAWatch(self._kind.name, "a line of it is no event") from None
        if kind == "ERROR":
            body = body_of(raw, str(raw))
            code = body.get("code")
            raise failure_of(Answer(status=code if isinstance(code, int) else 500, body=body), self._kind.name)
        if version < self._version:
            self._went_back = True
            raise Expired(self._kind.name, f"the server went back from version {self._version} to {version}")
        self._version, self._news_at = version, asyncio.get_running_loop().time()
        self._is_a_watch()
        self.health.heard()
        if kind == "BOOKMARK":
            self._cache.bookmark(self._kind.name, version)
        else:
            self._cache.apply(self._kind.name, raw, deleted=kind == "DELETED")

    def _opened(self) -> None:
        recovered, was_bad = self.health.trouble, bool(self.health.problem())
        self.health.opened()
        if recovered:
            _log.info("%s: works again", self._kind.name)
        if was_bad:
            self._cache.poke()

    async def _refused(self, failure: Failure) -> None:
        """The kind is not served, or we may not read it: what the cache holds of it can no longer be trusted. An
        optional kind is absent only where discovery says so, since a 404 may be a proxy's. One that was there may have
        objects still, and counts as removed only once that has been said for minutes."""
        self._version = 0
        self.health.refused = True
        if isinstance(failure, Forbidden):
            self._broke(str(failure))
            return
        nothing = f"the server has nothing at {self._kind.path}"
        if not self._kind.optional:
            self._broke(f"{self._kind.name} is not installed: {nothing}")
        elif not await is_absent(self._client, self._kind.path):
            self._broke(f"whether {self._kind.name} is installed is not known: {nothing}, and does not say so")
        elif self.health.listed and not self.health.gone_for(REMOVED_SECONDS):
            until = f"it counts as removed once that has been so for {REMOVED_SECONDS / 60:.0f} min"
            self._broke(f"{self._kind.name} was installed, and now {nothing}: {until}", gone=True)
        else:
            self.health.listed = False
            was_absent = self.health.absent
            self._broke(f"{self._kind.name} is not installed: {nothing}", absent=True)
            if not was_absent:
                self._cache.replace(self._kind.name, [], 0)
                self._cache.poke()

    def _broke(self, trouble: str, *, absent: bool = False, gone: bool = False) -> None:
        """Log what is wrong, once."""
        is_new = trouble != self.health.trouble
        self.health.broke(trouble, absent=absent, gone=gone)
        if is_new:
            _log.warning("%s", trouble)
            self._cache.poke()

    async def _back_off(self) -> None:
        await asyncio.sleep(self._delay * random.uniform(0.5, 1.0))
        self._delay = (_DELAYS_IN_DOUBT if self._in_vain >= _IN_VAIN else _DELAYS).after(self._delay)


class Watch:
    def __init__(self, cache: Cache, client: Client) -> None:
        self._client = client
        self._streams = [Stream(kind, cache, client) for kind in cache.kinds()]
        self._health = {stream.health.kind: stream.health for stream in self._streams}
        self._stopped = ""

    async def run(self) -> None:
        """Runs until cancelled, and closes its connection then. It may be run again after it has ended."""
        self._stopped = ""
        try:
            await self._client.open()
            await asyncio.gather(*[stream.run() for stream in self._streams])
        finally:
            self._stopped = "the watch has been stopped"
            await self._client.close()

    def problem_of(self, kind: str) -> str:
        """Why the cache's objects of a kind cannot be trusted now; empty if they can."""
        return self._stopped or self._health[kind].problem()

    def silent_for(self, kind: str) -> float:
        """Seconds since anything of that kind was received; 0 if it never was."""
        return self._health[kind].silent_seconds

    def was_listed(self, kind: str) -> bool:
        """Whether the server has had such a kind since the watch began."""
        return self._health[kind].listed

    def problem(self) -> str:
        """Why the cache as a whole cannot be trusted now; empty if it can."""
        if self._stopped:
            return self._stopped
        for stream in self._streams:
            problem = stream.health.problem()
            if problem:
                return problem
        return ""

    def troubles(self) -> tuple[str, ...]:
        """What does not work now: a line for each kind, optional ones included."""
        lines = (stream.health.trouble or stream.health.problem() for stream in self._streams)
        return tuple(line for line in lines if line)

    def only_refused(self, kinds: Iterable[str]) -> bool:
        """Whether the server refuses all of these, or does not serve them."""
        return all(self._health[kind].refused for kind in kinds)
