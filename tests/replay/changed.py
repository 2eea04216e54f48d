"""A copy of the workflows with a change in it, against which histories are replayed.

The sandbox loads the workflows' own modules anew for each workflow, from the first place on Python's path; so a copy
that stands there is what runs, in this process and without a change to the modules that are loaded already.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import WorkflowHistory

import dovetail
from tests.system.histories import replayer

PACKAGE = Path(dovetail.__file__).parent


@dataclass(frozen=True)
class Change:
    """What is put in the place of what in one file of workflows/. `types`: whose histories must notice it;
    `noticed_by`: the name of one that does."""

    what: str
    file: str
    edits: tuple[tuple[str, str], ...]
    types: tuple[str, ...]
    noticed_by: str = ""


@contextmanager
def in_place(change: Change, folder: Path) -> Iterator[None]:
    """The changed copy is what workflows are loaded from."""
    copy = folder / "changed"
    make_copy(change, copy / PACKAGE.name)
    sys.path.insert(0, str(copy))
    try:
        yield
    finally:
        sys.path.remove(str(copy))


def make_copy(change: Change, package: Path) -> None:
    """The package with links to everything but the workflows, which are copied and changed."""
    package.mkdir(parents=True)
    for entry in PACKAGE.iterdir():
        if entry.name == "workflows":
            shutil.copytree(entry, package / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry.resolve())
    file = package / "workflows" / change.file
    file.write_text(edited(change, file.read_text()))


def edited(change: Change, text: str) -> str:
    """The text with the change; each of its edits must fit exactly once."""
    for old, new in change.edits:
        assert text.count(old) == 1, f"{change.what}: workflows/{change.file} has {text.count(old)} times: {old}"
        text = text.replace(old, new)
    return text


async def first_failure(histories: list[WorkflowHistory]) -> Exception | None:
    """Why the first history that does not replay does not; None where all do."""
    player = replayer()
    for history in histories:
        try:
            await player.replay_workflow(history)
        except Exception as error:
            return error
    return None
