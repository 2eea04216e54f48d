"""Which lines of the workflows the recorded histories reach; python -m tests.replay.reached prints the others.

In a separate process, because it traces every line, and whoever asks may be traced already.
"""

import ast
import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import coverage

AROUND = (
    "converter.py",
    "task_size.py",
    "heartbeat_profile.py",
    "outbound.py",
    "short_failures.py",
    "trace_context.py",
)  # they stand around the workflows and are tested by themselves

# By function, with the reason why no history can run it.
_ASKED: Final = "asked from outside, which leaves nothing in a history"
_CHANCE: Final = "only where two things fall into one task, which no test brings about yet"
_TEXT: Final = "only the text of a log line or of the details"

UNREACHED: Final = {
    "disrupt_nodes.py status": _ASKED,
    "disrupt_nodes.py refuse_when_too_late": _ASKED,
    "launch_node.py status": _ASKED,
    "scheduler.py status": _ASKED,
    "terminate_node.py status": _ASKED,
    "disrupt_nodes.py enter": _CHANCE,
    "claim_owners.py _start": "a start that fails otherwise than because it runs already",
    "caretaker.py fill": _TEXT,
    "loops.py go_on": "the whole workflow is cancelled, which nobody does to a singleton",
    "loops.py raise_first": _CHANCE,
    "loops.py said": _TEXT,
    "scheduler.py answer": "a decision that planned nothing, and what cannot be",
    "scheduler.py carry_out_provisioning": "a plan that only nominates, which no test of the workflow brings yet",
    "shielding.py shielded": "work that ends by its own cancel",
}


def unreached() -> Iterator[str]:
    """The functions with a line that no replay runs, each with the lines' numbers."""
    measured = coverage.Coverage(data_file=None, include=["*/workflows/*.py"], concurrency=["thread"])
    measured.start()
    from tests.replay.changed import first_failure
    from tests.replay.recorded import read_history, recorded_files

    failure = asyncio.run(first_failure([read_history(file) for file in recorded_files()]))
    measured.stop()
    if failure is not None:
        raise failure
    for name in measured.get_data().measured_files():
        if Path(name).name not in AROUND:
            _, _, _, missing, _ = measured.analysis2(name)
            yield from by_function(Path(name), missing)


def by_function(file: Path, lines: list[int]) -> Iterator[str]:
    """These lines under the functions that they belong to."""
    functions = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found: dict[str, list[int]] = {}
    for line in lines:
        around = [f for f in functions if f.lineno <= line <= (f.end_lineno or line)]
        name = max(around, key=lambda f: f.lineno).name if around else "the module"
        found.setdefault(f"{file.name} {name}", []).append(line)
    for name, numbers in found.items():
        yield f"{name}: {', '.join(str(number) for number in numbers)}"


if __name__ == "__main__":
    print("\n".join(sorted(unreached())))
    sys.stdout.flush()
    os._exit(0)
