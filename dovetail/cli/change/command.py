"""`dovetail plan -f FILE`, from its arguments to what is printed."""

import asyncio
from pathlib import Path

from dovetail.cli.change.answer import ChangeAnswer, change_answer
from dovetail.cli.change.documents import Document, read_documents
from dovetail.cli.change.ground import Ground, ground_of
from dovetail.cli.change.supposition import suppose
from dovetail.cli.change.text import change_markdown, change_text
from dovetail.cli.output import LEFT_BEHIND, Ended, say
from dovetail.cli.remote.asked_text import fitted
from dovetail.cli.shown.documents import document
from dovetail.cli.shown.formats import DOCUMENTS, rendered
from dovetail.worker.settings import Settings


async def planned_change(settings: Settings, file: Path, snapshot: Path | None, ahead: float) -> ChangeAnswer:
    """What the file would bring about within so many seconds."""
    async with ground_of(settings, snapshot) as ground:
        documents = read_documents(file, ground.look.snapshot.supported_node_classes)
        return await change_on(ground, documents, ahead)


async def change_on(ground: Ground, documents: tuple[Document, ...], ahead: float) -> ChangeAnswer:
    """What these objects would bring about there."""
    supposed = await suppose(ground, documents)
    return await asyncio.to_thread(change_answer, ground, supposed, supposed.before.now + ahead)


def change_in(answer: ChangeAnswer, form: str, *, diff: bool) -> str:
    """As text or as Markdown."""
    return change_markdown(answer) if form == "markdown" else change_text(answer, diff=diff)


def show_change(answer: ChangeAnswer, form: str, *, diff: bool) -> None:
    """Print it; the exit code says whether something would be left behind."""
    if form in DOCUMENTS:
        say(rendered(document("PlannedChange", answer.cluster, answer), form, {}))
    else:
        say(fitted(lambda: change_in(answer, form, diff=diff)))
    if answer.left_behind:
        raise Ended(LEFT_BEHIND)
