"""The runner of our workers refuses workflow code that a replay could take another way."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail import workflows
from dovetail.worker.sandbox import runner
from tests.replay.changed import Change, first_failure, in_place
from tests.replay.recorded import HISTORIES, read_history

TERMINATION = HISTORIES / "TerminateNode" / "killed.json"
MODULES = sorted(Path(inspect.getfile(workflows)).parent.glob("*.py"))

FORBIDDEN = {
    "the clock": ("import time", "time.time()"),
    "today's date": ("import datetime", "datetime.datetime.now()"),
    "randomness": ("import random", "random.random()"),
    "a new uuid": ("import uuid", "uuid.uuid4()"),
    "the environment": ("import os", "os.getenv('HOME')"),
}


@pytest.mark.parametrize("forbidden", FORBIDDEN)
async def test_a_workflow_that_asks_the_machine_is_refused(forbidden: str, tmp_path: Path) -> None:
    how, call = FORBIDDEN[forbidden]
    begins = '        self.enter("tainting")\n'
    change = Change(
        what=f"a workflow reads {forbidden}",
        file="terminate_node.py",
        edits=(
            ("from temporalio import workflow\n", f"{how}\nfrom temporalio import workflow\n"),
            (begins, f"        {call}\n{begins}"),
        ),
        types=("TerminateNode",),
    )

    with in_place(change, tmp_path):
        failure = await first_failure([read_history(TERMINATION)])

    assert failure is not None, f"{call} was accepted"
    assert f"Cannot access {call.partition('(')[0]}" in str(failure)


async def test_what_a_workflow_is_made_of_is_refused_the_same(tmp_path: Path) -> None:
    """A function of another file of workflows/, which the workflow calls."""
    begins = (
        '    """Let searches find the phase, if it may last. `unless_known`: not where the workflow began with it."""\n'
    )
    change = Change(
        what="a function that workflows share reads the clock",
        file="attributes.py",
        edits=(
            ("from temporalio import workflow\n", "import time\nfrom temporalio import workflow\n"),
            (begins, f"{begins}    time.time()\n"),
        ),
        types=("TerminateNode",),
    )

    with in_place(change, tmp_path):
        failure = await first_failure([read_history(TERMINATION)])

    assert failure is not None and "Cannot access time.time" in str(failure)


async def test_an_unchanged_copy_replays(tmp_path: Path) -> None:
    """The copy itself must not be what fails."""
    unchanged = Change(what="nothing", file="terminate_node.py", edits=(), types=())

    with in_place(unchanged, tmp_path):
        assert await first_failure([read_history(TERMINATION)]) is None


def test_no_file_of_the_workflows_is_passed_through_the_sandbox() -> None:
    """Neither by the runner nor by a workflow that imports another file of its package past the sandbox."""
    assert not [name for name in runner().restrictions.passthrough_modules if name.startswith("dovetail.workflows")]
    for module in MODULES:
        past = [
            inner.module
            for block in ast.walk(ast.parse(module.read_text()))
            if isinstance(block, ast.With)
            for inner in block.body
            if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("dovetail.workflows")
        ]
        assert not past, f"{module.name} imports {past} past the sandbox"


# What lint says of each when a workflow uses it.
REFUSED_BY_LINT = {
    "import time\n\nNOW = time.time()\n": "`time` is banned",
    "import random\n\nCHANCE = random.random()\n": "`random` is banned",
    "import uuid\n\nNEW = uuid.uuid4()\n": "`uuid` is banned",
    "from datetime import datetime\n\nNOW = datetime.now()\n": "`datetime.datetime.now` is banned",
    **{
        f"import asyncio\n\nWAIT = asyncio.{name}\n": f"`asyncio.{name}` is banned"
        for name in ("wait", "wait_for", "as_completed", "timeout", "sleep", "to_thread")
    },
}


@pytest.mark.parametrize("text", REFUSED_BY_LINT)
def test_lint_refuses_it_before_it_runs(text: str) -> None:
    room = Path(inspect.getfile(workflows)).resolve().parent
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", str(room / "new.py"), "-"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    assert checked.returncode == 1 and REFUSED_BY_LINT[text] in checked.stdout, checked.stdout + checked.stderr
