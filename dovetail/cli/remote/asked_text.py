"""Commands that a worker answers with text or with a document, by the path of its API."""

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dovetail.cli.output import as_json, say

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document
    from dovetail.cli.remote.workers import Workers


def pod_name(given: argparse.Namespace) -> str:
    """With its namespace, which may be given beside it."""
    name: str = given.name
    return name if "/" in name or not getattr(given, "pods", "") else f"{given.pods}/{name}"


def remote_answer(given: argparse.Namespace, workers: "Workers") -> int:
    """Ask a worker and print what it says."""
    from urllib.parse import quote

    say_asked(given, workers, f"{given.path}/{quote(pod_name(given), safe='/')}", {"at": getattr(given, "at", "")})
    return 0


def say_asked(given: argparse.Namespace, workers: "Workers", path: str, words: Mapping[str, str]) -> None:
    """Print what a worker answers, in the format that is asked for. Empty words are not sent."""
    from dovetail.answers.shown.screen import screen
    from dovetail.cli.shown.formats import DOCUMENTS, rendered

    sent = {key: value for key, value in words.items() if value}
    if given.output in DOCUMENTS:
        say(rendered(workers.document(path, sent), given.output, {}))
    else:
        say(workers.text(path, screen().width, {**sent, "view": given.output}))


def fitted(text: Callable[[], str]) -> str:
    """A text that is made here, for the screen that it is printed on."""
    from dovetail.answers.shown.screen import screen
    from dovetail.answers.wording import fitting

    with fitting(screen().width):
        return text()


def shown_as_document(given: argparse.Namespace, found: "Document", text: Callable[[], str]) -> None:
    """Print an answer that was made here and is one document however JSON is asked for."""
    from dovetail.cli.shown.formats import DOCUMENTS, rendered

    form = "json" if given.json else given.output
    say(rendered(found, form, {}) if form in DOCUMENTS else text())


def shown_locally(given: argparse.Namespace, answer: tuple[str, str, object], text: Callable[[Any], str]) -> None:
    """Print an answer that was made here: its kind, its cluster, and itself."""
    from dovetail.answers.shown.documents import document
    from dovetail.cli.shown.formats import rendered

    if given.json:
        say(as_json(answer[2]))
    elif given.output == "text":
        say(fitted(lambda: text(answer[2])))
    else:
        say(rendered(document(*answer), given.output, {}))
