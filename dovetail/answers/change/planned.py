"""`dovetail plan -f FILE`: from the file's objects to the printed answer."""

import asyncio

from dovetail.answers.change.answer import ChangeAnswer, change_answer
from dovetail.answers.change.basis import Basis
from dovetail.answers.change.documents import Document
from dovetail.answers.change.supposition import suppose
from dovetail.answers.change.text import change_markdown, change_text
from dovetail.answers.turn import computing


async def change_on(basis: Basis, documents: tuple[Document, ...], ahead: float) -> ChangeAnswer:
    """What these objects would cause there."""
    supposed = await suppose(basis, documents)
    async with computing():
        return await asyncio.to_thread(change_answer, basis, supposed, supposed.before.now + ahead)


def change_in(answer: ChangeAnswer, form: str, *, diff: bool) -> str:
    return change_markdown(answer) if form == "markdown" else change_text(answer, diff=diff)
