"""The live view: what each key does, and the loop that waits for keys and answers."""

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from dovetail.answers.rollouts.text import rollouts_block
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.answer import NOT_OURS, ClusterStatus, NodeRow, NodesAnswer
from dovetail.answers.status.columns import FIELDS, SORTS
from dovetail.cli.remote.workers import Workers
from dovetail.cli.top.drawing import Shown, Size, frame
from dovetail.cli.top.gantt import gantt_lines
from dovetail.cli.top.keys import BACK, ENTER, ESCAPE, keys_in
from dovetail.cli.top.questions import Answer, Look, Questions, Remark, Savings, Text
from dovetail.cli.top.terminal import Terminal
from dovetail.cli.top.view import Group, View, items_of

PAGE: Final = 20
MOST_PRICES: Final = 400
IDLE_SECONDS: Final = 3600.0  # a key or an answer comes sooner

HELP: Final = (
    "↑ ↓ PgUp PgDn Home End   move; k and j too",
    f"s   the next order: {', '.join(SORTS)}",
    "r   turn the order round",
    "g   group by pool, zone, type, or not; Enter on a group closes and opens it",
    "/   filter: words that a line has, or KEY=VALUE, KEY!=VALUE, KEY~PART, !KEY; KEY is a label or one of",
    f"    {', '.join(FIELDS)}",
    "e   explain the node: why it stays or leaves (Enter too)",
    "h   its history: each step of its workflows as a bar",
    "t   explain it as it was: asks for a time, 3h or 2026-05-01T12:00:00Z; needs the flight recorder",
    "c   cancel its disruption; asks for the reason",
    "R   replace it: a new node first, then its drain; asks for the reason",
    "N   replace it now: its drain first (replace --now); asks for the reason",
    "D   decide what becomes of its drain, where that is held: force, wait 6h or cancel",
    "o   roll-outs: their steps, gates, what each waits for, and the command that lets it go on",
    "p   pause disruption and expiry everywhere; P: of the node's NodePool; both ask for the reason",
    "u   resume everything; U: the node's NodePool",
    "m   what would be done now (dovetail plan); f: windows, expiries and drift of the next 7 days (forecast)",
    "l   what happened in the last 24 hours (dovetail log)",
    "v   what disruption saved in 30 days (savings); V: the same by namespace",
    "d   which decisions are kept (dovetail replay); b: beside a Karpenter that works (shadow report)",
    "Esc back   q quit",
)

# Answers about the whole cluster: by key, the path of the API and its parameters.
OF_ALL: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "m": ("plan", {}),
    "f": ("forecast", {"for": "7d"}),
    "l": ("log", {"since": "24h"}),
    "v": ("savings", {"since": "30d"}),
    "V": ("savings", {"since": "30d", "by": "namespace"}),
    "d": ("replay", {}),
    "b": ("shadow", {}),
}

Typed = Callable[[str], None]


class Top:
    def __init__(self, view: View, questions: Questions) -> None:
        self.view = view
        self.questions = questions
        self.shown: Shown | None = None
        self.trouble = "asking a worker …"
        self.columns = 80
        self.ended = False
        self._saved: list[float] = []
        self._typed: Typed | None = None
        self._question = ""
        self._text = ""
        self._key: tuple[object, ...] | None = None
        self._keys = self._actions()

    def take(self, answer: Answer) -> None:
        match answer:
            case Look(status=status, nodes=nodes) if status is not None and nodes is not None:
                self._looked(status, nodes)
            case Look(trouble=trouble):
                self._say(trouble)
                self.trouble = trouble
            case Text(title=title, lines=lines) if self.shown is not None:
                self.shown.title, self.shown.text, self.shown.scrolled, self.shown.says = title, lines, 0, ""
            case Remark(text=text):
                self._say(text)
            case Savings(dollars=dollars):
                self._saved = [] if dollars is None else [*self._saved, dollars][-MOST_PRICES:]

    def _say(self, text: str) -> None:
        if self.shown is not None:
            self.shown.says = text

    def _looked(self, status: ClusterStatus, nodes: NodesAnswer) -> None:
        before = self.shown
        self.shown = Shown(status=status, nodes=nodes, items=())
        if before is not None:
            kept = ("prices", "says", "prompt", "text", "title", "scrolled")
            for name in kept:
                setattr(self.shown, name, getattr(before, name))
        self.shown.prices = [*self.shown.prices, status.totals.price][-MOST_PRICES:]
        self._key = None

    def lines(self, size: Size, screen: Screen) -> list[str]:
        self.columns = size.columns
        if self.shown is None:
            return [self.trouble[: size.columns]] + [""] * (size.lines - 1)
        self.shown.saved = self._saved
        key = self.view.key(self.shown.nodes)
        if key != self._key:
            self._key, self.shown.items = key, items_of(self.shown.nodes, self.view)
        return frame(self.shown, self.view, size, screen)

    def press(self, key: str) -> None:
        if self.shown is None:
            self.ended = key == "q"
            return
        self.shown.says = ""
        if self._typed is not None:
            self._type(key)
            return
        if self.shown.title and self._scroll(key):
            return
        act = self._keys.get(key)
        if act is not None:
            act()

    def _actions(self) -> dict[str, Callable[[], None]]:
        moves = {
            "up": -1,
            "k": -1,
            "down": 1,
            "j": 1,
            "pageup": -PAGE,
            "pagedown": PAGE,
            "home": -(10**9),
            "end": 10**9,
        }
        found: dict[str, Callable[[], None]] = {key: partial(self._move, by) for key, by in moves.items()}
        return {
            **found,
            "q": self._end,
            "s": self.view.next_sort,
            "r": self._turn,
            "g": self.view.next_group,
            "/": self._filter,
            ENTER: self._enter,
            "e": lambda: self._about(_explained),
            "h": lambda: self._about(_history),
            **{key: partial(self._whole, path, words) for key, (path, words) in OF_ALL.items()},
            "t": self._as_it_was,
            "c": lambda: self._change("cancel"),
            "R": lambda: self._change("replace"),
            "N": lambda: self._change("replace", "--now"),
            "D": self._decide,
            "o": self._rollouts,
            "p": lambda: self._pause(""),
            "P": lambda: self._of_pool(self._pause),
            "u": lambda: self.questions.command("resume"),
            "U": lambda: self._of_pool(self._resume),
            "?": lambda: self.take(Text(title="keys", lines=list(HELP))),
            ESCAPE: self._clear,
        }

    def _end(self) -> None:
        self.ended = True

    def _move(self, by: int) -> None:
        assert self.shown is not None
        self.view.move(by, len(self.shown.items))

    def _turn(self) -> None:
        self.view.turned = not self.view.turned

    def _clear(self) -> None:
        self.view.filter = ""

    def _scroll(self, key: str) -> bool:
        """Scroll the text on the screen; returns whether the key was meant for it."""
        assert self.shown is not None
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -PAGE, "pagedown": PAGE, "home": -(10**9)}
        if key in (ESCAPE, ENTER, "q"):
            self.shown.title = ""
            return True
        self.shown.scrolled += steps.get(key, 0)
        return key in steps

    def _under(self) -> NodeRow | Group | None:
        assert self.shown is not None
        items = self.shown.items
        return items[min(self.view.selected, len(items) - 1)] if items else None

    def _enter(self) -> None:
        item = self._under()
        if isinstance(item, Group):
            self.view.fold(item.name)
        else:
            self._about(_explained)

    def _about(self, make: Callable[[Workers, NodeRow, int], Text]) -> None:
        item, columns = self._under(), self.columns
        if item is None or isinstance(item, Group):
            self._say("move to a node first")
            return
        self._say(f"{item.name}: asking …")
        self.questions.ask(lambda workers: make(workers, item, columns))

    def _whole(self, path: str, words: Mapping[str, str]) -> None:
        columns = self.columns
        self._say(f"{path}: asking …")
        self.questions.ask(lambda workers: Text(title=path, lines=_text(workers, path, columns, words)))

    def _as_it_was(self) -> None:
        """Ask the person for a moment, then about the node under the cursor at that moment."""
        item = self._under()
        if item is None or isinstance(item, Group):
            self._say("move to a node first")
            return
        self._prompt(f"explain {item.name} as it was (3h, or a moment): ", self._explained_at)

    def _explained_at(self, at: str) -> None:
        self._about(partial(_explained, at=at.strip()))

    def _change(self, verb: str, *more: str) -> None:
        item = self._under()
        if item is None or isinstance(item, Group):
            self._say("move to a node first")
            return
        if item.state == NOT_OURS:
            self._say(f"{item.name} is not ours: nobody can {verb} it here")
            return
        claim = item.claim
        words = " ".join((verb, item.name, *more))
        self._prompt(f"{words}: why? ", lambda why: self._reasoned(why, verb, claim, *more))

    def _decide(self) -> None:
        """Ask the person what to do with the drain of the node under the cursor."""
        item = self._under()
        if item is None or isinstance(item, Group):
            self._say("move to a node first")
            return
        name = item.claim or item.name
        self._prompt(f"decide {item.name}: force, wait 6h or cancel? ", lambda what: self._decided(name, what))

    def _decided(self, name: str, what: str) -> None:
        words = what.split()
        if not words:
            self._say("nothing was decided")
            return
        self._say(f"decide {name} {' '.join(words)} …")
        self.questions.command("decide", name, *words)

    def _rollouts(self) -> None:
        assert self.shown is not None
        status = self.shown.status
        found = rollouts_block(status.rollouts, status.now, Screen(width=self.columns))
        self.take(Text(title="roll-outs", lines=found or ["no roll-out is under way"]))

    def _of_pool(self, act: Callable[[str], None]) -> None:
        """Run the action on the NodePool of the node under the cursor."""
        item = self._under()
        if item is None or isinstance(item, Group) or not item.pool or item.state == NOT_OURS:
            self._say("move to a node of one of our NodePools first")
            return
        act(item.pool)

    def _pause(self, pool: str) -> None:
        where = f"NodePool {pool}" if pool else "all NodePools"
        words = ("pause", *(("--pool", pool) if pool else ()))
        self._prompt(f"pause disruption and expiry of {where}: why? ", lambda why: self._reasoned(why, *words))

    def _resume(self, pool: str) -> None:
        self.questions.command("resume", *(("--pool", pool) if pool else ()))

    def _reasoned(self, why: str, *words: str) -> None:
        if not why.strip():
            self._say("nothing was changed: a reason is needed")
            return
        self._say(f"{' '.join(words)} …")
        self.questions.command(*words, "--reason", why.strip())

    def _filter(self) -> None:
        self._prompt("filter: ", self._set_filter, self.view.filter)

    def _set_filter(self, text: str) -> None:
        self.view.filter, self.view.selected = text.strip(), 0

    def _prompt(self, question: str, typed: Typed, text: str = "") -> None:
        assert self.shown is not None
        self._question, self._text, self._typed = question, text, typed
        self.shown.prompt = question + text

    def _type(self, key: str) -> None:
        """A key while something is being typed."""
        assert self.shown is not None and self._typed is not None
        if key in (ENTER, ESCAPE):
            typed, self._typed, self.shown.prompt = self._typed, None, None
            if key == ENTER:
                typed(self._text)
            return
        if key == BACK:
            self._text = self._text[:-1]
        elif len(key) == 1:
            self._text += key
        self.shown.prompt = self._question + self._text


def _text(workers: Workers, path: str, columns: int, words: Mapping[str, str] | None = None) -> list[str]:
    return workers.text(path, columns, words).splitlines()


def _explained(workers: Workers, node: NodeRow, columns: int, at: str = "") -> Text:
    path = f"explain/node/{quote(node.claim or node.name)}"
    lines = _text(workers, path, columns, {"at": at} if at else None)
    return Text(title=f"explain {node.name}{f' --at {at}' if at else ''}", lines=lines)


def _history(workers: Workers, node: NodeRow, columns: int) -> Text:
    """The history as bars, and below in words."""
    if not node.claim:
        return Text(title=f"history {node.name}", lines=["it is not ours: there is no record of it"])
    path = f"history/{quote(node.claim)}"
    bars = gantt_lines(workers.document(path), time.time(), columns)
    return Text(title=f"history {node.name}", lines=[*bars, "", *_text(workers, path, columns)])


def run_top(given: argparse.Namespace, view: View, colours: bool) -> int:
    screen = Screen(colours=colours)
    with Terminal() as terminal:
        questions = Questions(given, terminal.wake)
        top = Top(view, questions)
        questions.begin()
        try:
            while not top.ended:
                while not questions.answers.empty():
                    top.take(questions.answers.get())
                terminal.show(top.lines(terminal.size(), screen))
                for key in keys_in(terminal.read(IDLE_SECONDS)):
                    top.press(key)
        except EOFError:
            return 1
        finally:
            questions.end()
    return 0
