"""The page of commands, from the parser that reads them."""

import argparse
from collections.abc import Iterator

from docs.tools.reference.tables import code, table
from dovetail.cli.main import INTERRUPTED, OTHER_CLUSTER, READER_GONE, parser
from dovetail.cli.output import NEEDS_PERSON

# What exit code 4 says, by the command.
_TOLD = (
    "`status --check`, `fleet --check`: something needs a person; `plan -f`: something would stay behind; "
    "`replay`: something else comes out"
)


def commands_page() -> str:
    """The whole page."""
    sections = "\n".join(_section(name, command, words) for name, command, words in _commands(parser(), "dovetail"))
    return f"""# Commands

Every command takes `--help`. What they read besides is in [settings](settings.md): the environment finds the cluster
(`KUBECONFIG`, `CLUSTER_NAME`) and Temporal (`TEMPORAL_ADDRESS` and Temporal's other variables).

| exit code | |
|---|---|
| 0 | done |
| 1 | refused or failed; one line on standard error says why |
| 2 | the command line cannot be read |
| {OTHER_CLUSTER} | [another cluster](../operations.md#several-clusters-in-one-namespace-of-temporal) has the name |
| {NEEDS_PERSON} | {_TOLD} |
| {INTERRUPTED} | interrupted |
| {READER_GONE} | whoever read the output has gone |

{sections}"""


Found = tuple[str, argparse.ArgumentParser, str]


def _commands(of: argparse.ArgumentParser, prefix: str) -> Iterator[Found]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            words = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                below = list(_commands(command, f"{prefix} {name}"))
                yield from below or [(f"{prefix} {name}", command, words[name])]


def _section(name: str, command: argparse.ArgumentParser, words: str) -> str:
    rows = [(_words_of(action), action.help or "") for action in command._actions if action.dest != "help"]
    shown = table(("argument", ""), [(code(called), does.replace("%%", "%")) for called, does in rows]) if rows else ""
    return f"## `{name}`\n\n{_sentence(words)}\n\n{shown}\n\n{command.epilog or ''}".rstrip() + "\n"


def _words_of(action: argparse.Action) -> str:
    called = ", ".join(action.option_strings)
    if action.nargs == 0:
        return called
    value = action.metavar or (action.dest.upper() if called else action.dest)
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return f"{called} {text}".strip()


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."
