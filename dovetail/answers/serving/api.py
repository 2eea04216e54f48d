"""The worker's read-only API, /api/v1: the table of questions over HTTP, answered from the worker's existing view.

The API server, through whose proxy the command line comes, decides who may ask (docs/reference/api.md); the budget
decides how often. Loaded with the first request, so that a worker that nobody asks does not hold the explaining code in
memory.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qs, unquote

import orjson

from dovetail.answers.change.carried import unpacked
from dovetail.answers.failures import CommandFailed, NotUnderstood
from dovetail.answers.questions.asking import Answered, Ask, Asked, Source
from dovetail.answers.questions.table import CARRIED, QUESTIONS, question
from dovetail.answers.serving.budget import OF_OTHERS, Budget
from dovetail.answers.serving.page_files import PAGE, file_of_page
from dovetail.answers.serving.replies import ASKER, Answer, Followed
from dovetail.answers.shown.documents import API_VERSION, Document
from dovetail.model.values.time import format_time

MOST_WORDS: Final = 32  # of a query
WORDS: Final = frozenset(key for place in QUESTIONS.values() for key in place.parameters)  # all others have no meaning
MOST_FOLLOWERS: Final = 16
MOST_OF_ONE: Final = 8  # of one asker
FOLLOWED_SECONDS: Final = 600.0  # then a follower reconnects, perhaps to another worker
STREAM_SECONDS: Final = 2.0
STREAM: Final = "stream"
FORMS: Final = ("wide", "markdown")  # of texts, besides the usual one
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
PLAIN: Final = "text/plain; charset=utf-8"

OLD_SECONDS: Final = 5.0  # an answer that was begun longer ago says so

# The document, the same as text (empty if a command makes that itself), and when the answer was begun.
Shown = tuple[Document, str, float]


async def forever() -> None:
    """Never return: the wait until Temporal is away, if there is no Temporal."""
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question, and the form of text that is wanted."""

    route: str
    asked: Asked
    width: int
    form: str


@dataclass(slots=True)
class Api:
    """The routes below /api/v1/; the rest of a path is the name of the object in question."""

    source: Source
    budget: Budget = field(default_factory=Budget)
    until_away: Callable[[], Awaitable[None]] = forever  # until Temporal does not answer
    _asks: Mapping[str, Ask] = field(default_factory=lambda: {route: question(route) for route in QUESTIONS})
    _followed: Counter[str] = field(default_factory=Counter)  # followers of the stream, by asker

    async def reply(self, target: str) -> Answer | Followed:
        """Answer one request; `target` is what follows /api/v1/, with its query."""
        if target.partition("?")[0].strip("/") != STREAM:
            return await self.answer(target)
        asker = ASKER.get()
        if self._followed.total() >= MOST_FOLLOWERS or self._followed[asker] >= MOST_OF_ONE:
            return 503, JSON, _error(f"{self._followed.total()} follow already; ask for status instead")
        return 200, EVENTS, self._statuses(asker)

    async def answer(self, target: str) -> Answer:
        path, _, words = target.partition("?")
        path = path.strip("/")
        if (file := file_of_page(path)) is not None:
            return file
        try:
            found = _words(words)
            query = _query(path, found)
            place, settings = QUESTIONS[query.route], self.source.settings
            waits = bool(place.waits or (place.waits_with and query.asked.word(place.waits_with)))
            plans = settings.pass_limit + settings.search_limit
            shown: Shown = await self.budget.answer(query, lambda: self._shown(query), waits=waits, plans=plans)
        except NotUnderstood as error:
            return 400, JSON, _error(str(error))
        except CommandFailed as error:
            return 404, JSON, _error(str(error))
        except OF_OTHERS as error:
            return 503, JSON, _error(str(error) or "no answer in time")
        except Exception as error:
            return 500, JSON, _error(f"{type(error).__name__}; the worker's log has it")
        document, text, began = shown
        age = time.time() - began
        as_of = format_time(began) if age > OLD_SECONDS else ""
        if found.get("view") and text:
            return 200, PLAIN, text + (f"\nas of {as_of}, {age:.0f} s ago\n" if as_of else "\n")
        if as_of:
            document = {**document, "asOf": as_of}
        return 200, JSON, await asyncio.to_thread(_dumped, document)

    async def _shown(self, query: Query) -> Shown:
        """Both forms, in a thread: of a large cluster they are long."""
        began = time.time()
        asked = await asyncio.to_thread(_unpacked, query.asked)
        asking = self._asks[query.route](self.source, asked)
        answered = await (self._unless_away(asking) if QUESTIONS[query.route].waits == "Temporal" else asking)
        width = query.width or None
        return await asyncio.to_thread(lambda: (answered.document(), answered.shown(query.form, width), began))

    async def _unless_away(self, asking: Awaitable[Answered]) -> Answered:
        """TimeoutError once Temporal is away: waiting longer would use up the turns of others."""
        asked, away = asyncio.ensure_future(asking), asyncio.ensure_future(self.until_away())
        try:
            await asyncio.wait({asked, away}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise TimeoutError("Temporal does not answer, which keeps the history: docs/temporal-outages.md")
            return asked.result()
        finally:
            away.cancel()
            asked.cancel()

    async def _statuses(self, asker: str) -> AsyncIterator[str]:
        """The status each time it changes, as server-sent events, until the follower must reconnect."""
        self._followed[asker] += 1
        clock = self.budget.clock
        try:
            ends, last = clock() + FOLLOWED_SECONDS, ""
            yield "retry: 2000\n\n"
            while clock() < ends:
                code, _, found = await self.answer("status")
                body = found if isinstance(found, str) else found.decode()
                if body != last or code != 200:
                    yield f"event: {'status' if code == 200 else 'trouble'}\ndata: {body}\n\n"
                else:
                    yield ": the same\n\n"  # so that a disconnected follower is noticed
                last = body
                await asyncio.sleep(STREAM_SECONDS)
        finally:
            self._followed -= Counter((asker,))


def _words(query: str) -> Mapping[str, str]:
    """The query's parameters by key; if a key is given twice, the last value."""
    try:
        found = parse_qs(query, max_num_fields=MOST_WORDS)
    except ValueError:
        raise NotUnderstood(f"the query has more than {MOST_WORDS} words") from None
    return {key: values[-1] for key, values in found.items()}


def _query(path: str, words: Mapping[str, str]) -> Query:
    route, name = _route(path)
    view = words.get("view", "")
    asked = Asked(name=unquote(name), words=tuple(sorted((key, value) for key, value in words.items() if key in WORDS)))
    return Query(route=route, asked=asked, width=_width(words.get("width", "")), form=view if view in FORMS else "")


def _unpacked(asked: Asked) -> Asked:
    """The parameters with the text of the file that the query carries."""
    words = {key: unpacked(value) if key == CARRIED else value for key, value in asked.words}
    return replace(asked, words=tuple(words.items()))


def _route(path: str) -> tuple[str, str]:
    for route in QUESTIONS:
        if path == route or path.startswith(f"{route}/"):
            return route, path[len(route) + 1 :]
    raise CommandFailed(f"/api/v1/{path}: there is {', '.join((*QUESTIONS, STREAM, PAGE))}")


def _width(text: str) -> int:
    return min(1000, int(text)) if text.isdecimal() and len(text) < 6 else 0


def _dumped(found: Document) -> str:
    return orjson.dumps(found).decode()


def _error(message: str) -> str:
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "Error", "message": message}).decode()
