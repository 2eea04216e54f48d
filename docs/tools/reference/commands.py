"""The page of commands, from the parser that reads them."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from docs.tools.reference.tables import code, table
from dovetail.cli.helping import CONNECTION, USES
from dovetail.cli.main import INTERRUPTED, OTHER_CLUSTER, READER_GONE, parser
from dovetail.cli.output import NEEDS_PERSON

# What exit code 4 says, by the command.
_TOLD = (
    "`status --check`, `fleet --check`: something needs a person; `plan -f`: something would stay behind; "
    "`replay`: something else comes out"
)


def commands_page() -> str:
    """The whole page."""
    commands = list(_commands(parser(), "dovetail"))
    connection = _connection(command for _, command, _ in commands)
    sections = "\n".join(_section(name, command, connection) for name, command, _ in commands)
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
| {READER_GONE} | what read the output has ended |

## The connection

Most commands take these; a command's own table has its other arguments, and names those of the connection below it.

{_table(connection.values())}

{sections}"""


def _connection(commands: Iterable[argparse.ArgumentParser]) -> dict[str, tuple[str, str]]:
    """By its first name, how each option of the connection is written and what it says, where most commands say it."""
    found = Counter(_row(action) for command in commands for action in command._actions if _connects(action))
    most: dict[str, tuple[str, str]] = {}
    for row, _ in found.most_common():
        name = next(option for option in CONNECTION if option in row[0])
        most.setdefault(name, row)
    return {name: most[name] for name in CONNECTION}


def _connects(action: argparse.Action) -> bool:
    return bool(set(action.option_strings) & set(CONNECTION))


def _row(action: argparse.Action) -> tuple[str, str]:
    return _words_of(action), (action.help or "").replace("%%", "%")


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return table(("argument", ""), [(code(called), does) for called, does in rows])


Found = tuple[str, argparse.ArgumentParser, str]


def _commands(of: argparse.ArgumentParser, prefix: str) -> Iterator[Found]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            words = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                below = list(_commands(command, f"{prefix} {name}"))
                yield from below or [(f"{prefix} {name}", command, words[name])]


def _section(name: str, command: argparse.ArgumentParser, connection: Mapping[str, tuple[str, str]]) -> str:
    what, *examples = USES[name.removeprefix("dovetail ")]
    rows = [_row(action) for action in command._actions if action.dest != "help"]
    own = [row for row in rows if row not in connection.values()]
    shared = [code(option) for option, row in connection.items() if row in rows]
    parts = (
        f"## `{name}`",
        what,
        "\n".join(["```sh", *examples, "```"]),
        _table(own) if own else "",
        f"[Connection](#the-connection): {', '.join(shared)}." if shared else "",
        command.epilog or "",
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def _words_of(action: argparse.Action) -> str:
    called = ", ".join(action.option_strings)
    if action.nargs == 0:
        return called
    value = action.metavar or (action.dest.upper() if called else action.dest)
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return f"{called} {text}".strip()
