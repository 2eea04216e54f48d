"""What may come next on a command line, from the parser that will read the line.

Names of nodes, claims, pools and waiting pods come from a worker; if none answers in time there are no names and no
message, because a person is typing.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.status.columns import FIELDS, SORTS

if TYPE_CHECKING:
    from dovetail.cli.remote.workers import Where

    Names = Callable[[Where, str], Sequence[str]]  # the names of one kind: nodes, claims, pools, pods, decisions

SECONDS: Final = 3.0

# By the argument: the command that takes it and its name. "": every command.
_KINDS: Final = {
    ("cancel", "node"): ("nodes", "claims"),
    ("replace", "node"): ("nodes", "claims"),
    ("decide", "node"): ("nodes", "claims"),
    ("node", "name"): ("nodes", "claims"),
    ("history", "name"): ("nodes", "claims", "pods"),
    ("pod", "name"): ("pods",),
    ("replay", "decision"): ("decisions",),
    ("log", "pod"): ("pods",),
    ("", "pool"): ("pools",),
}


class _Line:
    """A command line as typed so far."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        self.command = ""
        self.awaiting: argparse.Action | None = None  # an option that takes the next word
        self.positions = 0  # the number of positional arguments so far
        self.given: dict[str, str] = {}

    def read(self, word: str) -> None:
        if self.awaiting is not None:
            self._keep(self.awaiting, word)
            self.awaiting = None
            return
        if word.startswith("-"):
            name, has_value, value = word.partition("=")
            action = self.parser._option_string_actions.get(name)
            if action is not None and has_value:
                self._keep(action, value)
            elif action is not None and action.nargs != 0:
                self.awaiting = action
            return
        chosen = self._subcommands().get(word)
        if chosen is not None:
            self.parser, self.command, self.positions = chosen, word, 0
        else:
            self.positions += 1

    def _keep(self, action: argparse.Action, value: str) -> None:
        self.given[action.dest] = value

    def _subcommands(self) -> dict[str, argparse.ArgumentParser]:
        found = [a for a in self.parser._actions if isinstance(a, argparse._SubParsersAction)]
        return dict(found[0].choices) if found and self.positions == 0 else {}

    def next_words(self, start: str, names: "Names") -> Iterator[tuple[str, str]]:
        """The possible next words, each with its meaning."""
        if self.awaiting is not None:
            yield from ((value, "") for value in self._values(self.awaiting, names))
        elif start.startswith("-"):
            yield from _options(self.parser)
        elif self._subcommands():
            yield from _commands(self.parser)
        else:
            places = [a for a in self.parser._actions if not a.option_strings]
            repeated = places[-1:] if places and places[-1].nargs in ("*", "+") else []
            for action in places[self.positions : self.positions + 1] or repeated:
                yield from ((value, "") for value in self._values(action, names))

    def _values(self, action: argparse.Action, names: "Names") -> Iterator[str]:
        if action.choices is not None:
            yield from map(str, action.choices)
        if action.dest == "sort":
            yield from SORTS
        if action.dest == "context":
            yield from _contexts(self._where())
        yield from _known(action)
        for kind in _KINDS.get((self.command, action.dest), _KINDS.get(("", action.dest), ())):
            yield from names(self._where(), kind)

    def _where(self) -> "Where":
        from dovetail.cli.remote.workers import Where

        given = self.given
        return Where(
            kubeconfig=given.get("kubeconfig", os.environ.get("KUBECONFIG", "")),
            context=given.get("context", os.environ.get("DOVETAIL_CONTEXT", "")),
            namespace=given.get("namespace", ""),
            service=given.get("service", os.environ.get("DOVETAIL_SERVICE", "")),
        )


def completions(parser: argparse.ArgumentParser, words: Sequence[str], names: "Names | None" = None) -> list[str]:
    """Lines for the shell: a word, a tab, and its meaning."""
    *before, start = words or [""]
    line = _Line(parser)
    for word in before:
        line.read(word)
    found = dict.fromkeys(line.next_words(start, names or names_of_workers))
    return [f"{word}\t{meaning}".rstrip("\t") for word, meaning in found if word.startswith(start)]


def _known(action: argparse.Action) -> Sequence[str]:
    """Words known without a worker: where workers are looked for, and the fields that choose nodes."""
    if action.dest == "namespace":
        from dovetail.cli.remote.workers import NAMESPACES

        return NAMESPACES
    if action.dest == "selector":
        return [f"{field}=" for field in FIELDS]
    return ()


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        for option in action.option_strings:
            if option.startswith("--"):
                yield option, action.help or ""


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from ((each.dest, each.help or "") for each in action._choices_actions)


def _contexts(where: "Where") -> Sequence[str]:
    from dovetail.cli.remote.kubeconfig import contexts

    try:
        return contexts(where.kubeconfig)
    except CommandFailed:
        return ()


def names_of_workers(where: "Where", kind: str) -> Sequence[str]:
    """Ask a worker; empty if none answers."""
    from dovetail.cli.remote.workers import Workers

    try:
        workers = Workers(where, SECONDS)
        try:
            if kind == "decisions":
                return tuple(each["id"] for each in workers.document("replay")["flights"])
            return tuple(workers.document("names").get(kind, ()))
        finally:
            workers.close()
    except CommandFailed:
        return ()
