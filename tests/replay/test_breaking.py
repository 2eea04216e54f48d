"""The recorded histories notice what would break them: each breaking change turns a replay red."""

from pathlib import Path

import pytest

from dovetail.worker.task_queues import WORKFLOWS
from tests.replay.breaking import BREAKING
from tests.replay.changed import Change, first_failure, in_place
from tests.replay.recorded import HISTORIES, read_history

pytestmark = pytest.mark.slow

FEWEST = 12


def histories_of(change: Change) -> list[Path]:
    return [file for kind in change.types for file in sorted((HISTORIES / kind).glob("*.json"))]


@pytest.mark.parametrize("change", BREAKING, ids=lambda change: change.what.replace(" ", "-"))
async def test_a_breaking_change_turns_a_replay_red(change: Change, tmp_path: Path) -> None:
    files = histories_of(change)
    files.sort(key=lambda file: file.stem != change.noticed_by)

    with in_place(change, tmp_path):
        failure = await first_failure([read_history(file) for file in files])

    assert failure is not None, f"{len(files)} histories of {', '.join(change.types)} replay although {change.what}"
    assert "TMPRL1100" in str(failure), f"not another course but a broken change: {failure}"


@pytest.mark.parametrize("change", BREAKING, ids=lambda change: change.what.replace(" ", "-"))
def test_the_history_that_is_replayed_first_is_there(change: Change) -> None:
    assert change.noticed_by in {file.stem for file in histories_of(change)}


def test_every_workflow_has_a_breaking_change() -> None:
    assert {kind for change in BREAKING for kind in change.types} == {workflow.__name__ for workflow in WORKFLOWS}
    assert len(BREAKING) >= FEWEST
