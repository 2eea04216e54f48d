"""What each workflow asks of Temporal, in the order of its source: python -m tests.replay.fingerprints writes the file.

A changed fingerprint is no error by itself: it says that a running workflow may not replay, so the change needs
`workflow.patched` or a history that shows that it replays.
"""

import ast
import inspect
import json
import textwrap
from pathlib import Path

from dovetail.worker.task_queues import WORKFLOWS

FILE = Path(__file__).parent / "fingerprints.json"

# Calls that leave commands in a history.
COMMANDS = frozenset(
    {
        "execute_activity",
        "execute_activity_method",
        "start_activity",
        "start_activity_method",
        "start_child_workflow",
        "execute_child_workflow",
        "start_launches",
        "start_terminations",
        "show_phase",
        "continue_as_new",
        "renew",
        "sleep",
        "wait_condition",
        "upsert_search_attributes",
        "patched",
        "deprecate_patch",
        "uuid4",
        "uuid7",
        "random",
        "signal",
        "cancel",
    }
)


class _Finder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in COMMANDS:
            first = node.args[0] if node.args else None
            self.found.append(f"{name}({ast.unparse(first) if isinstance(first, ast.Attribute | ast.Name) else ''})")
        self.generic_visit(node)


def fingerprint_of(cls: type) -> dict[str, list[str]]:
    """The commands of each method that has any."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    result: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            finder = _Finder()
            finder.visit(node)
            if finder.found:
                result[node.name] = finder.found
    return result


def fingerprints() -> dict[str, dict[str, list[str]]]:
    """By workflow type."""
    return {cls.__name__: fingerprint_of(cls) for cls in WORKFLOWS}


if __name__ == "__main__":
    FILE.write_text(json.dumps(fingerprints(), indent=1, sort_keys=True) + "\n")
    print(f"written: {FILE}")
