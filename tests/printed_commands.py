"""The commands that the product prints, and what a shell, kubectl and our own parser would make of each.

People paste what they are told. A command that is a pipeline, or names a resource that no API server has, is worse than
none.
"""

import argparse
import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dovetail.adapters.kubernetes_json.kinds import CLUSTER_KINDS, MOVE_KINDS
from dovetail.api.kinds import KINDS
from dovetail.cli.helping import with_options_behind
from dovetail.cli.main import _flags_apart, parser

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = ("dovetail", "activities", "worker", "workflows")
ANY: Final = "SOMETHING"  # stands for what is filled in
OPERATORS: Final = frozenset("|<>;")
# It begins a text, a line, a column, or follows a mark; it ends where a quotation, a bracket or the sentence does.
_COMMAND: Final = re.compile(r"(?:^|[`(]|: |, |> |→ |  )((?:kubectl|dovetail) (?:-n \S+ )?[a-z].*)", re.MULTILINE)
_END: Final = re.compile(r"`|\)|  |: |; |, | · | → | && |\.$|…", re.MULTILINE)
_VERBS: Final = ("get", "describe", "edit", "annotate", "delete")
# Named without its arguments, or with a word that is filled in.
_MENTIONED: Final = ("the following arguments are required", "expected one argument", f"invalid choice: '{ANY}'")


def _resources() -> frozenset[str]:
    """As kubectl knows them: plural, singular and short names, of custom ones also with their group."""
    found = {
        name for kind in (*CLUSTER_KINDS, *MOVE_KINDS) for name in (kind.name.lower(), kind.path.rpartition("/")[2])
    }
    for each in KINDS:
        full = (each.plural, each.kind.lower())
        found |= {*full, *each.short_names, *(f"{name}.{each.group}" for name in full)}
    return frozenset({*found, "embeddednodeclass.dovetail.sh"})  # of the simulated world


RESOURCES: Final = _resources()


def commands_in(text: str) -> Iterator[str]:
    """Each command that the text has."""
    at = 0
    while found := _COMMAND.search(text, at):
        command = _END.split(found[1])[0]
        at = found.start(1) + len(command)
        yield command.strip()


def fault_of(command: str) -> str:
    """Why it is none that can be pasted; empty if it is. A command may be named without its arguments."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if any(set(word) <= OPERATORS for word in words):
        return f"{command}: the shell takes a part of it for an operator"
    return _fault_of_kubectl(words) if words[0] == "kubectl" else _fault_of_ours(words)


def _fault_of_kubectl(words: list[str]) -> str:
    rest = words[3:] if words[1] == "-n" else words[1:]
    if "-n" in rest:
        rest = rest[: rest.index("-n")] + rest[rest.index("-n") + 2 :]
    if rest[0] not in _VERBS or len(rest) < 2 or rest[1].startswith("-") or ANY in rest[1]:
        return ""
    return "" if rest[1] in RESOURCES else f"{' '.join(words)}: no API server has {rest[1]}"


def _fault_of_ours(words: list[str]) -> str:
    top = parser()
    if words[1] not in _commands_of(top):
        return f"{' '.join(words)}: there is no such command"
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            own, _ = _flags_apart(with_options_behind(words[1:], top))
            top.parse_args(own)
    except SystemExit:
        if not any(each in said.getvalue() for each in _MENTIONED):
            return f"{' '.join(words)}: {said.getvalue()}"
    return ""


def _commands_of(top: argparse.ArgumentParser) -> frozenset[str]:
    [commands] = [each for each in top._actions if isinstance(each, argparse._SubParsersAction)]
    return frozenset(commands.choices)


def printed() -> Iterator[tuple[str, str]]:
    """Each command in a text of the product, and the file that has it."""
    for part in PRODUCT:
        for file in sorted((ROOT / part).rglob("*.py")):
            for text in _texts(ast.parse(file.read_text())):
                yield from ((str(file.relative_to(ROOT)), command) for command in commands_in(text))
    for file in sorted((ROOT / "dovetail").rglob("*.js")):
        for _, text in re.findall(r"""typed\((["`])((?:dovetail|kubectl) .+?)\1\)""", file.read_text()):
            yield str(file.relative_to(ROOT)), re.sub(r"\$\{.*?\}(?=[ /]|$)", ANY, text)


def _texts(tree: ast.Module) -> Iterator[str]:
    """Its texts, without docstrings; what is filled in later is ANY."""
    within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else ANY for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within | said:
            yield node.value
