"""A frame of `dovetail top`: lines that fit the screen, made from two answers and the person's choices.

Only the nodes of the page are drawn, so that 5,000 of them cost no more than 50.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dovetail.answers.rollouts.text import one_line, rollout_colour
from dovetail.answers.shown.screen import GOES_ON, NEEDS_PERSON, WAITS, Screen
from dovetail.answers.shown.tables import Column, bar, cut, table
from dovetail.answers.status.answer import ClusterStatus, Move, NodesAnswer
from dovetail.answers.status.columns import NodeColumn, columns_of
from dovetail.answers.status.nodes_text import node_cells, node_colour, use_text
from dovetail.answers.status.text import nodes_words, trouble_words
from dovetail.answers.wording import HOURS_IN_MONTH, plural
from dovetail.cli.top.view import Group, Item, View
from dovetail.model.values.time import format_time

MOST_BELOW: Final = 8  # lines about what moves and what needs a person
TURNED: Final = "7"  # the line under the cursor
SPARKS: Final = "▁▂▃▄▅▆▇█"
KEYS: Final = (
    "↑↓ PgUp PgDn move",
    "s sort",
    "r turn",
    "g group",
    "/ filter",
    "e explain",
    "h history",
    "c cancel",
    "R replace",
    "p pause",
    "o roll-outs",
)
ALWAYS: Final = "? keys  q quit"  # shown at any width: how to find all other keys, and how to quit


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    columns: int
    lines: int


@dataclass(slots=True, kw_only=True)
class Shown:
    """The content of a frame. `text`: lines of an explanation, shown instead of the nodes."""

    status: ClusterStatus
    nodes: NodesAnswer
    items: Sequence[Item]
    prices: Sequence[float] = ()  # of the last looks, oldest first
    saved: Sequence[float] = ()  # what disruption saved in 24 hours, by the last answers
    says: str = ""  # the last answer to a key
    prompt: str | None = None  # what is being typed
    text: list[str] = field(default_factory=list)
    title: str = ""
    scrolled: int = 0


def frame(shown: Shown, view: View, size: Size, screen: Screen) -> list[str]:
    """As many lines as the terminal has, none wider than it."""
    fit = Screen(width=size.columns, colours=screen.colours)
    head, foot = _head(shown, size, fit), [_last(shown, size)]
    below = _below(shown.status, fit, min(MOST_BELOW, max(0, size.lines // 4)))
    room = max(1, size.lines - len(head) - len(below) - len(foot))
    middle = _text(shown, size, room) if shown.title else _list(shown, view, fit, room)
    middle += [""] * (room - len(middle))
    return [*head, *middle[:room], *below, *foot][: size.lines]


def _head(shown: Shown, size: Size, screen: Screen) -> list[str]:
    totals = shown.status.totals
    month = f"${totals.price * HOURS_IN_MONTH:,.0f}/month"
    parts = [
        shown.status.cluster or "cluster",
        nodes_words(totals),
        f"{plural(totals.pods, 'pod')} ({totals.pending_pods:,} pending)",
        f"${totals.price:,.2f}/h",
        month,
        f"spot {totals.spot:.0%}",
        shown.status.scheduler,
    ]
    if len(" · ".join(parts)) > size.columns:
        parts.remove(month)
    if len(" · ".join(parts)) > size.columns:
        parts[1] = plural(totals.nodes, "node")
    cells = max(6, min(24, size.columns // 8))
    uses = (("cpu", totals.cpu), ("mem", totals.memory))
    use = [f"{name} {bar(each.share, cells)} {each.share:.0%}" for name, each in uses]
    spark = sparkline(shown.prices, max(8, size.columns // 8))
    trend = f"   $ {spark} {_change(shown.prices)}" if spark else ""
    second = "  ".join(use) + trend
    second += _savings(shown.saved, size.columns - len(second))
    lines = [cut(" · ".join(parts), size.columns), cut(second, size.columns)]
    lines += [screen.paint(cut(line, size.columns), WAITS) for line in shown.status.pauses[:2]]
    troubles = [
        screen.paint(cut(f"! {trouble_words(each, shown.status.now)}", size.columns), NEEDS_PERSON)
        for each in shown.status.troubles[:2]
    ]
    return [*troubles, *lines, ""]


def sparkline(values: Sequence[float], most: int) -> str:
    """The last values as a line of small bars; empty with fewer than two."""
    last = list(values)[-most:]
    if len(last) < 2:
        return ""
    low, high = min(last), max(last)
    span = (high - low) or 1.0
    return "".join(SPARKS[round((value - low) / span * (len(SPARKS) - 1))] for value in last)


def _savings(values: Sequence[float], room: int) -> str:
    """The savings, with their sparkline if there is one and it fits; empty if not known."""
    if not values:
        return ""
    amount = f"${values[-1]:,.2f} in 24h"
    spark = sparkline(values, max(8, room - len(amount) - 10))
    whole = f"   saved {spark} {amount}" if spark else ""
    short = f"   saved {amount}"
    return whole if whole and len(whole) <= room else short if len(short) <= room else ""


def _change(values: Sequence[float]) -> str:
    by = values[-1] - values[0]
    return f"{'−' if by < 0 else '+'}${abs(by):.2f}/h" if abs(by) >= 0.005 else "±0"


def _list(shown: Shown, view: View, screen: Screen, room: int) -> list[str]:
    """The page, with a head and a line that says which part of the list it shows."""
    if not shown.items:
        words = f"no node matches {view.filter!r}" if view.filter else "no nodes"
        return [words]
    page = view.page_of(len(shown.items), max(1, room - 2))
    columns = columns_of("top")
    extra = tuple(Column(head=label.rpartition("/")[2].upper(), rank=9, cut=True) for label in view.extra)
    items = [shown.items[at] for at in page]
    rows = [(*_row(item, columns, shown.nodes.now), *_labels(item, view.extra)) for item in items]
    # The cursor has a column of its own, so that it is seen without colours too.
    marks = [">" if at == view.selected else " " for at in page]
    lines = table(
        (Column(head=" "), *columns, *extra),
        [(mark, *row) for mark, row in zip(marks, rows, strict=True)],
        screen=Screen(width=screen.width),
    )
    painted = [screen.paint(line, _colour(item)) for line, item in zip(lines[1:], items, strict=True)]
    at = view.selected - page.start
    painted[at] = screen.paint(lines[1 + at], TURNED)
    return [lines[0], *painted, cut(_where(shown, view, page), screen.width or 80)]


def _where(shown: Shown, view: View, page: range) -> str:
    parts = [f"{page.start + 1:,}–{page.stop:,} of {len(shown.items):,}", f"by {view.sort}"]
    if view.turned:
        parts[-1] += ", turned"
    if view.group:
        parts.append(f"grouped by {view.group}")
    if view.filter:
        parts.append(f"filter {view.filter}")
    return " · ".join(parts)


def _colour(item: Item) -> str:
    return "1" if isinstance(item, Group) else node_colour(item)


def _row(item: Item, columns: Sequence[NodeColumn], now: float) -> tuple[str, ...]:
    if not isinstance(item, Group):
        return node_cells(item, columns, now, "top")
    name, *_ = columns
    return tuple(f"{item.name} ({item.nodes:,})" if each is name else _sum(item, each) for each in columns)


def _sum(group: Group, column: NodeColumn) -> str:
    if column.key not in group.sums:
        return ""
    found = group.sums[column.key]
    return use_text(found) if column.kind == "share" else f"{found:,.2f}" if column.kind == "price" else f"{found:,}"


def _labels(item: Item, wanted: Sequence[str]) -> tuple[str, ...]:
    if isinstance(item, Group):
        return ("",) * len(wanted)
    return tuple(item.labels.get(label, "") for label in wanted)


def _text(shown: Shown, size: Size, room: int) -> list[str]:
    """The visible part of an explanation, with its title."""
    most = room - 1
    shown.scrolled = max(0, min(shown.scrolled, len(shown.text) - most))
    part = shown.text[shown.scrolled : shown.scrolled + most]
    end = shown.scrolled + len(part)
    head = f"{shown.title} · lines {shown.scrolled + 1}–{end} of {len(shown.text)} · Esc closes"
    return [cut(head, size.columns), *[cut(line, size.columns) for line in part]]


def _below(status: ClusterStatus, screen: Screen, room: int) -> list[str]:
    """First what needs a person, then roll-outs, then what moves, then what was done."""
    width = screen.width or 80
    needs = [(_named("! ", need.about, need.what, width), NEEDS_PERSON) for need in status.needs_person]
    rolled = [(f"= {each.name}: {one_line(each, status.now, 8)}", rollout_colour(each)) for each in status.rollouts]
    moves = [(_move_words(move, width), WAITS if move.blockers else GOES_ON) for move in status.under_way]
    recent = [(f"  {format_time(each.at)} {each.text}", "") for each in reversed(status.recent)]
    lines = [*needs[: max(1, room // 2)], *rolled, *moves, *recent][:room]
    left = len(needs) + len(rolled) + len(moves) - sum(1 for _, colour in lines if colour)
    if left > 0 and lines:
        lines[-1] = (f"  … and {left + 1} more: dovetail status -o wide", "")
    return ["", *[screen.paint(cut(text, width), colour) for text, colour in lines]] if lines else []


def _move_words(move: Move, width: int) -> str:
    parts = [f"{move.why}, {move.step}", move.progress]
    return _named("~ ", move.name, " · ".join(part for part in parts if part), width)


def _named(mark: str, name: str, words: str, width: int) -> str:
    """Drops the domain of a node's name if the words would otherwise be cut: the list shows it."""
    whole = f"{mark}{name}: {words}"
    return whole if len(whole) <= width else f"{mark}{name.partition('.')[0]}: {words}"


def _last(shown: Shown, size: Size) -> str:
    if shown.prompt is not None:
        return cut(f"{shown.prompt}▏", size.columns)
    if shown.says:
        return cut(shown.says, size.columns)
    line = ""
    for key in KEYS:
        if len(longer := f"{line}{key}  ") + len(ALWAYS) > size.columns:
            break
        line = longer
    return cut(line + ALWAYS, size.columns)
