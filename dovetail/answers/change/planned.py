"""`dovetail plan -f FILE`, from its arguments to what is printed."""

import asyncio
from pathlib import Path

from dovetail.answers.change.answer import ChangeAnswer, change_answer
from dovetail.answers.change.documents import Document, read_documents
from dovetail.answers.change.ground import Ground, ground_of
from dovetail.answers.change.supposition import suppose
from dovetail.answers.change.text import change_markdown, change_text
from dovetail.settings.settings import Settings


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
