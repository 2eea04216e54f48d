"""The worker's read-only API, /api/v1: the answers of the command line, from the view that the worker has anyway.

One answer is made at a time, in a thread, and kept for a few times as long as it took, as is an error; and when the
making has used up its share of the processor, questions wait. However many people ask whatever they like, no heartbeat
and no step waits for them, and over time no more than a fifth of one core is spent. Who may ask is decided by the API
server, through whose proxy the command line comes (docs/reference/api.md).

Loaded with the first request, so that a worker that nobody asks does not hold what explains.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote

import orjson
from temporalio.client import Client
from temporalio.service import RPCError

from dovetail.answers.change.carried import unpacked
from dovetail.answers.change.documents import documents_of
from dovetail.answers.change.forecast import forecast_in, forecast_on
from dovetail.answers.change.ground import ground_in
from dovetail.answers.change.planned import change_in, change_on
from dovetail.answers.doctor.doctor import doctor_of_worker
from dovetail.answers.doctor.text import doctor_text
from dovetail.answers.explain.explain_node import explain_node_now
from dovetail.answers.explain.explain_node_text import node_text
from dovetail.answers.explain.explain_pod import explain_pod
from dovetail.answers.explain.explain_pod_text import pod_text
from dovetail.answers.failures import CommandFailed, NotUnderstood
from dovetail.answers.look.sources import Look, look_now, state_from
from dovetail.answers.plan.plan import plan_now
from dovetail.answers.plan.plan_text import plan_text
from dovetail.answers.record.entries import Entries, Period, period_of
from dovetail.answers.record.history import stories_or_kept
from dovetail.answers.record.history_text import history_text
from dovetail.answers.record.kept import entries_of, kept_objects
from dovetail.answers.record.log import Wanted, log_from, log_in
from dovetail.answers.record.made_for import with_pods
from dovetail.answers.record.paces import KEPT_SECONDS as PACES_SECONDS
from dovetail.answers.record.paces import read_paces
from dovetail.answers.record.savings import savings_from, savings_in
from dovetail.answers.replay.replaying import flights_text, list_flights, look_back, replay, replay_text
from dovetail.answers.serving.names import names_of
from dovetail.answers.serving.replies import Answer, Followed
from dovetail.answers.serving.versions import versions_of, worker_count
from dovetail.answers.shadow.shadow import Shadow
from dovetail.answers.shadow.text import shadow_text
from dovetail.answers.shown.documents import API_VERSION, Document, document
from dovetail.answers.status.columns import page_columns
from dovetail.answers.status.nodes import nodes_of, pods_of
from dovetail.answers.status.status import status_of
from dovetail.answers.wording import fitting, seconds_of
from dovetail.disruption.outlook.paces import Paces
from dovetail.model.quoting import one_line
from dovetail.model.watched_kinds import FLEET, PLACEMENT
from dovetail.ports.failures import Failure
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World
from dovetail.workflows.converter import UnreadablePayload

BUSY_SECONDS: Final = 20.0  # how long a question waits for its turn
KEPT_SECONDS: Final = 1.0  # an answer is kept for at least this long,
KEPT_FACTOR: Final = 4.0  # and for this many times as long as it took to make
MOST_KEPT: Final = 64
SHARE: Final = 0.2  # of one core, for all that is asked, over time
AT_ONCE_SECONDS: Final = 20.0  # of processor time that questions may use up before they are held to their share
MOST_WORDS: Final = 32  # of a query
WORDS: Final = frozenset(
    {"at", "called", "diff", "file", "for", "kind", "pod", "pool", "reason", "since", "until"}
)  # another one makes no other question
NO_TEMPORAL: Final = "the worker is not connected to Temporal: nominations and held plans are not considered"
MOST_ENTRIES: Final = 1000  # workflows whose histories are read for one answer
MOST_SAVINGS: Final = 5000  # the same for savings, whose sum is of use as a whole; half a millisecond of ours each
MOST_FOLLOWERS: Final = 16
FOLLOWED_SECONDS: Final = 600.0  # then a follower asks again, perhaps another worker
STREAM_SECONDS: Final = 2.0
PAGE: Final = "page"
STREAM: Final = "stream"
FORMS: Final = ("wide", "markdown")  # of texts, beside the usual one
JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"
EVENTS: Final = "text/event-stream"
PLAIN: Final = "text/plain; charset=utf-8"

_log = logging.getLogger(__name__)

Shown = tuple[Document, str]  # the document, and the same as text; empty where the command line makes that itself
Made = Shown | Exception  # what became of a question; why there is no answer is as much of one

OF_OTHERS: Final = (Failure, RPCError, UnreadablePayload, TimeoutError)  # who may answer again in a moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a route. `name`: what stands behind the route; `width` and `form`: of the text."""

    name: str
    width: int
    form: str = ""
    words: tuple[tuple[str, str], ...] = ()  # the rest of the query

    def word(self, key: str, otherwise: str = "") -> str:
        """One of them."""
        return dict(self.words).get(key, otherwise)


Maker = Callable[[Question], Awaitable[Shown]]
rest: Final = asyncio.sleep  # until the share allows another question


@dataclass(slots=True)
class Api:
    """The routes below /api/v1/, over one world."""

    settings: Settings
    world: World
    client: Callable[[], Client | None]
    shadow: Shadow | None = None  # of a worker beside Karpenter
    clock: Callable[[], float] = time.monotonic
    processor: Callable[[], float] = time.process_time
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _kept: dict[tuple[str, Question], tuple[float, Made]] = field(default_factory=dict)
    _spent: tuple[float, float] = (0.0, 0.0)  # seconds of the processor beyond the share, and when that was so
    _known: tuple[float, Paces | None] = (0.0, None)  # and when it was read
    _followed: int = 0  # how many follow the stream

    @property
    def routes(self) -> Mapping[str, Maker]:
        """By what follows /api/v1/; the rest of the path is the name that is asked about."""
        return {
            "status": self._status,
            "nodes": self._nodes,
            "pods": self._pods,
            "plan": self._plan,
            "forecast": self._forecast,
            "explain/node": self._explain_node,
            "explain/pod": self._explain_pod,
            "history": self._history,
            "log": self._log,
            "savings": self._savings,
            "doctor": self._doctor,
            "names": self._names,
            "version": self._version,
            "shadow": self._shadow,
            "replay": self._replay,
        }

    async def reply(self, target: str) -> Answer | Followed:
        """Answer one request; `target` is what follows /api/v1/, with its query."""
        if target.partition("?")[0].strip("/") != STREAM:
            return await self.answer(target)
        if self._followed >= MOST_FOLLOWERS:
            return 503, JSON, _error(f"{MOST_FOLLOWERS} follow already; ask for status instead")
        return 200, EVENTS, self._statuses()

    async def answer(self, target: str) -> Answer:
        """Answer what has one answer."""
        path, _, words = target.partition("?")
        path = path.strip("/")
        if path == PAGE:
            return 200, HTML, page()
        try:
            query = _query(words)
            route, question = self._asked(path, query)
            shown = await self._made(route, question)
        except NotUnderstood as error:
            return 400, JSON, _error(str(error))
        except CommandFailed as error:
            return 404, JSON, _error(str(error))
        except OF_OTHERS as error:
            return 503, JSON, _error(str(error) or "no answer in time")
        except Exception as error:
            return 500, JSON, _error(f"{type(error).__name__}; the worker's log has it")
        if query.get("view") and shown[1]:
            return 200, PLAIN, shown[1] + "\n"
        return 200, JSON, await asyncio.to_thread(_dumped, shown[0])

    def _route(self, path: str) -> tuple[str, str]:
        for route in self.routes:
            if path == route or path.startswith(f"{route}/"):
                return route, path[len(route) + 1 :]
        raise CommandFailed(f"/api/v1/{path}: there is {', '.join((*self.routes, STREAM, PAGE))}")

    def _asked(self, path: str, query: Mapping[str, str]) -> tuple[str, Question]:
        route, name = self._route(path)
        words = tuple(sorted((key, value) for key, value in query.items() if key in WORDS))
        view = query.get("view", "")
        form = view if view in FORMS else ""
        return route, Question(name=unquote(name), width=_width(query.get("width", "")), form=form, words=words)

    async def _statuses(self) -> AsyncIterator[str]:
        """The status each time that it has changed, as server-sent events, until it is time to ask anew."""
        self._followed += 1
        try:
            ends, last = self.clock() + FOLLOWED_SECONDS, ""
            yield "retry: 2000\n\n"
            while self.clock() < ends:
                code, _, found = await self.answer("status")
                body = found if isinstance(found, str) else found.decode()
                if body != last or code != 200:
                    yield f"event: {'status' if code == 200 else 'trouble'}\ndata: {body}\n\n"
                else:
                    yield ": the same\n\n"  # so that a follower who has gone away is noticed
                last = body
                await asyncio.sleep(STREAM_SECONDS)
        finally:
            self._followed -= 1

    async def _made(self, route: str, question: Question) -> Shown:
        """From what is kept, or made now; those who ask the same at the same time wait for one answer."""
        key = (route, question)
        made = self._fresh(key)
        if made is None:
            async with self._its_turn():
                made = self._fresh(key) or await self._keep(key)
        if isinstance(made, Exception):
            raise made.with_traceback(None)
        return made

    @asynccontextmanager
    async def _its_turn(self) -> AsyncIterator[None]:
        """One question at a time, and none while the share of all of them is used up."""
        taken = False
        try:
            async with asyncio.timeout(BUSY_SECONDS):
                taken = await self._turn.acquire()
                await rest(max(0.0, self._owed() - AT_ONCE_SECONDS) / SHARE)
        except BaseException as error:
            if taken:
                self._turn.release()
            if isinstance(error, TimeoutError):
                raise TimeoutError("the worker is busy with other questions; ask again") from None
            raise
        try:
            yield
        finally:
            self._turn.release()

    def _owed(self) -> float:
        """Seconds of the processor that were spent and are not paid for yet by the time that has passed."""
        spent, at = self._spent
        return max(0.0, spent - SHARE * (self.clock() - at))

    async def _keep(self, key: tuple[str, Question]) -> Made:
        """Make it, pay for it and keep it, whatever it came to: the same question again costs nothing."""
        began, before = self.clock(), self.processor()
        made: Made
        try:
            made = await self.routes[key[0]](key[1])
        except Exception as error:
            if not isinstance(error, (CommandFailed, *OF_OTHERS)):
                _log.exception("a question to the API came to nothing: %s", one_line(f"{key[0]} {key[1]}"))
            made = error.with_traceback(None)  # whose frames hold the whole look
        now = self.clock()
        # While a question waits for others it costs nothing; what the worker does meanwhile is counted for it too.
        self._spent = (self._owed() + min(now - began, self.processor() - before), now)
        factor = 0.0 if isinstance(made, OF_OTHERS) else KEPT_FACTOR
        self._kept = {k: kept for k, kept in self._kept.items() if kept[0] > now}
        if len(self._kept) < MOST_KEPT:
            self._kept[key] = (now + max(KEPT_SECONDS, factor * (now - began)), made)
        return made

    def _fresh(self, key: tuple[str, Question]) -> Made | None:
        until, made = self._kept.get(key, (0.0, None))
        return made if until > self.clock() else None

    async def _look(self) -> Look:
        client = self.client()
        if client is None:
            return await look_now(self.settings, self.world, None, NO_TEMPORAL, PLACEMENT)
        state, note = await state_from(client, self.settings.cluster, self.world.cluster_uid)
        return await look_now(self.settings, self.world, state, note, PLACEMENT)

    async def _told(self, kind: str, make: Callable[[Look], object]) -> Document:
        """An answer that the command line writes out itself."""
        look = await self._look()
        return await asyncio.to_thread(lambda: document(kind, self.settings.cluster, make(look)))

    async def _status(self, asked: Question) -> Shown:
        found = await self._told("ClusterStatus", status_of)
        client = self.client()
        found["workers"] = await worker_count(client, self.settings.cluster) if client is not None else None
        return found, ""

    async def _nodes(self, asked: Question) -> Shown:
        return await self._told("NodeList", nodes_of), ""

    async def _pods(self, asked: Question) -> Shown:
        return await self._told("PendingPodList", pods_of), ""

    async def _plan(self, asked: Question) -> Shown:
        look = await self._look()
        if asked.word("file"):
            return await self._change(asked, look)
        answer = await asyncio.to_thread(plan_now, look)
        return document("Plan", self.settings.cluster, answer), await _fitted(lambda: plan_text(answer), asked.width)

    async def _change(self, asked: Question, look: Look) -> Shown:
        """What the file that the query carries would bring about."""
        ahead, classes = seconds_of(asked.word("for", "30d")), look.snapshot.supported_node_classes
        documents = await asyncio.to_thread(
            lambda: documents_of(unpacked(asked.word("file")), asked.word("called", "the file"), classes)
        )
        ground = ground_in(self.world, look, await self._paces())
        answer = await change_on(ground, documents, ahead)
        shown = await _fitted(lambda: change_in(answer, asked.form, diff=bool(asked.word("diff"))), asked.width)
        return document("PlannedChange", self.settings.cluster, answer), shown

    async def _forecast(self, asked: Question) -> Shown:
        ground = ground_in(self.world, await self._look(), await self._paces())
        answer = await forecast_on(ground, seconds_of(asked.word("for", "7d")), asked.word("pool"))
        shown = await _fitted(lambda: forecast_in(answer, asked.form), asked.width)
        return document("Forecast", self.settings.cluster, answer), shown

    async def _paces(self) -> Paces:
        """How long nodes took of late, as it was read within the last minutes; nothing without Temporal."""
        at, found = self._known
        client = self.client()
        if client is not None and (found is None or self.clock() - at > PACES_SECONDS):
            try:
                found = await read_paces(client, self.settings.cluster)
            except RPCError as error:
                _log.warning("how long nodes took is not known: %s", error)
            else:
                self._known = (self.clock(), found)
        return found or Paces()

    async def _look_at(self, asked: Question) -> Look:
        """Now, or as a decision saw it that was kept."""
        at = asked.word("at")
        return await look_back(self.settings, at, time.time()) if at else await self._look()

    async def _explain_node(self, asked: Question) -> Shown:
        look = await self._look_at(asked)
        answer = await asyncio.to_thread(explain_node_now, look, asked.name)
        return document("NodeExplanation", self.settings.cluster, answer), await _fitted(
            lambda: node_text(answer), asked.width
        )

    async def _explain_pod(self, asked: Question) -> Shown:
        look = await self._look_at(asked)
        answer = await asyncio.to_thread(explain_pod, look, asked.name)
        return document("PodExplanation", self.settings.cluster, answer), await _fitted(
            lambda: pod_text(answer), asked.width
        )

    async def _history(self, asked: Question) -> Shown:
        client = self._connected()
        snapshot = self.world.view.snapshot(FLEET)
        answer = await stories_or_kept(client, self.settings, asked.name, snapshot)
        return document("History", self.settings.cluster, answer), await _fitted(
            lambda: history_text(answer), asked.width
        )

    def _connected(self) -> Client:
        client = self.client()
        if client is None:
            raise TimeoutError("the worker is not connected to Temporal, which keeps the history")
        return client

    async def _log(self, asked: Question) -> Shown:
        now = time.time()
        period = period_of(asked.word("since", "24h"), asked.word("until"), now)
        kinds = tuple(kind for kind in asked.word("kind").split(",") if kind)
        pool, reason, pod = (asked.word(key) for key in ("pool", "reason", "pod"))
        wanted = Wanted(period=period, pool=pool, reason=reason, pod=pod, kinds=kinds)
        found = await self._entries(period)
        if pod:
            found = await with_pods(self._connected(), self.settings.cluster, period, found)
        answer = await asyncio.to_thread(log_from, self.settings.cluster, wanted, found, now)
        shown = await asyncio.to_thread(log_in, answer, asked.form, asked.width or None)
        return document("Log", self.settings.cluster, answer), shown

    async def _savings(self, asked: Question) -> Shown:
        now = time.time()
        period = period_of(asked.word("since", "30d"), asked.word("until"), now)
        found = await self._entries(period, MOST_SAVINGS)
        answer = await asyncio.to_thread(savings_from, self.settings.cluster, period, found, now)
        shown = await asyncio.to_thread(savings_in, answer, asked.form, asked.width or None)
        return document("Savings", self.settings.cluster, answer), shown

    async def _entries(self, period: Period, most: int = MOST_ENTRIES) -> Entries:
        client = self._connected()
        async with kept_objects(self.settings) as kept:
            return await entries_of(client, self.settings, kept, period, most)

    async def _doctor(self, asked: Question) -> Shown:
        answer = await doctor_of_worker(self.settings, self.world, self.client())
        return document("Checks", self.settings.cluster, answer), await _fitted(
            lambda: doctor_text(answer), asked.width
        )

    async def _names(self, asked: Question) -> Shown:
        names = await asyncio.to_thread(lambda: names_of(self.world.view.snapshot(FLEET)))
        return document("Names", self.settings.cluster, names), ""

    async def _version(self, asked: Question) -> Shown:
        facts = await self.world.inspection.facts()
        answer = await versions_of(self.client(), self.settings.cluster, facts.version)
        return document("Versions", self.settings.cluster, answer), ""

    async def _replay(self, asked: Question) -> Shown:
        """Those that are kept, or one of them made again."""
        cluster = self.settings.cluster
        if not asked.name:
            kept = await list_flights(self.settings)
            return document("FlightList", cluster, kept), flights_text(kept)
        answer = await replay(self.settings, asked.name)
        return document("Replay", cluster, answer), await _fitted(lambda: replay_text(answer), asked.width)

    async def _shadow(self, asked: Question) -> Shown:
        if self.shadow is None:
            raise CommandFailed("shadow: this worker acts; `dovetail worker --beside-karpenter` decides and compares")
        answer = self.shadow.report()
        return document("ShadowReport", self.settings.cluster, answer), await _fitted(
            lambda: shadow_text(answer), asked.width
        )


@cache
def page() -> str:
    """The web page, one file that asks this API and nobody else, with the columns of nodes."""
    text = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return text.replace("/* columns.py */ {}", orjson.dumps(page_columns()).decode())


async def _fitted(text: Callable[[], str], width: int) -> str:
    """In a thread: of a large cluster it is a long text."""

    def written() -> str:
        with fitting(width):
            return text()

    return await asyncio.to_thread(written)


def _query(words: str) -> Mapping[str, str]:
    """By key; of a key that stands twice the last."""
    try:
        found = parse_qs(words, max_num_fields=MOST_WORDS)
    except ValueError:
        raise NotUnderstood(f"the query has more than {MOST_WORDS} words") from None
    return {key: values[-1] for key, values in found.items()}


def _width(text: str) -> int:
    return min(1000, int(text)) if text.isdecimal() and len(text) < 6 else 0


def _dumped(found: Document) -> str:
    return orjson.dumps(found).decode()


def _error(message: str) -> str:
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "Error", "message": message}).decode()
