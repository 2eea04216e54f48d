"""How a command asks: a worker over HTTP, or the same table of questions here. The output is the same."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from dovetail.answers.questions.table import CARRIED, QUESTIONS
from dovetail.cli.output import as_json, say
from dovetail.cli.shown.formats import DOCUMENTS, rendered

if TYPE_CHECKING:
    from dovetail.answers.questions.asking import Answered
    from dovetail.answers.shown.documents import Document
    from dovetail.cli.remote.workers import Workers
    from dovetail.settings.settings import Settings

_VERSIONED: Final = frozenset({"Forecast", "Log", "PlannedChange", "Savings"})  # --json is -o json of these


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in the forms that a command prints; a worker is asked for each one needed."""

    document: "Callable[[], Document]"
    text: Callable[[str], str]  # in that format, as wide as the screen


def shown(given: argparse.Namespace, answer: Answer) -> int:
    """Print it in the requested format; the exit code is 0."""
    say(rendered(answer.document(), given.output, {}) if given.output in DOCUMENTS else answer.text(given.output))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a command asks, by the route in the table of questions. `words`: the parameters, if they differ from the
    arguments of the same names; `show` prints the answer and returns the exit code."""

    route: str
    name: Callable[[argparse.Namespace], str] = lambda _: ""
    words: Callable[[argparse.Namespace], Mapping[str, str]] | None = None
    show: Callable[[argparse.Namespace, Answer], int] = shown

    def parameters(self, given: argparse.Namespace) -> dict[str, str]:
        """The parameters, without empty ones."""
        if self.words is not None:
            found = self.words(given)
        else:
            values = {key: getattr(given, key) for key in QUESTIONS[self.route].parameters}
            found = {key: ",".join(each) if isinstance(each, list) else each for key, each in values.items()}
        return {key: value for key, value in found.items() if value or key == CARRIED}


def asks(command: argparse.ArgumentParser, question: Question) -> None:
    """Let the command ask this: workers first, if allowed."""
    command.set_defaults(act=ask_here, remote=ask_workers, asks=question)


def ask_workers(given: argparse.Namespace, workers: "Workers") -> int:
    question: Question = given.asks
    return question.show(given, of_workers(given, workers))


def of_workers(given: argparse.Namespace, workers: "Workers") -> Answer:
    """The answer of the worker that the Service chooses."""
    from urllib.parse import quote

    from dovetail.answers.shown.screen import screen

    question: Question = given.asks
    name, words = question.name(given), question.parameters(given)
    path = f"{question.route}/{quote(name, safe='/')}" if name else question.route
    if CARRIED in words:
        from dovetail.answers.change.carried import packed

        words[CARRIED] = packed(words[CARRIED])
    return Answer(
        document=cache(lambda: workers.document(path, words)),
        text=lambda form: workers.text(path, screen().width, {**words, "view": form}),
    )


async def ask_here(given: argparse.Namespace, settings: "Settings") -> int:
    """Ask the table, with a world opened for it."""
    from dovetail.answers.shown.screen import screen

    question: Question = given.asks
    found = await answered_here(given, settings)
    if getattr(given, "json", False):
        if found.kind not in _VERSIONED:
            say(as_json(found.answer))
            return 0
        given.output = "json"
    return question.show(given, Answer(found.document, lambda form: found.shown(form, screen().width)))


async def answered_here(given: argparse.Namespace, settings: "Settings") -> "Answered":
    from dovetail.answers.questions.asking import Asked
    from dovetail.cli.local import LocalSource, answered

    question: Question = given.asks
    asked = Asked(name=question.name(given), words=tuple(sorted(question.parameters(given).items())))
    return await answered(LocalSource(settings, getattr(given, "snapshot", None)), question.route, asked)
