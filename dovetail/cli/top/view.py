"""What the person at `dovetail top` has chosen: order, groups, filter, page, the line under the cursor.

Nothing here depends on a terminal: a key changes the view, and a frame is drawn from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dovetail.answers.status.answer import NodeRow, NodesAnswer
from dovetail.answers.status.columns import BY_KEY, GROUPS, LARGEST_FIRST, SORTS, columns_of
from dovetail.answers.status.orders import ordered
from dovetail.answers.status.terms import meets, sieve

NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes that have something in common, with their sum."""

    name: str
    nodes: int
    sums: Mapping[str, float]  # by the column's key; for shares the mean

    @property
    def price(self) -> float:
        return self.sums["price"]


Item = NodeRow | Group  # a line of the list


@dataclass(slots=True, kw_only=True)
class View:
    """Which nodes are shown and how. `selected` counts among the lines of the list."""

    sort: str = "price"
    turned: bool = False  # in reverse order
    group: str = ""
    filter: str = ""
    extra: tuple[str, ...] = ()  # labels with a column of their own
    selected: int = 0
    first: int = 0  # the first line of the page
    closed: frozenset[str] = field(default=frozenset())  # groups that show only their sum

    def move(self, by: int, lines: int) -> None:
        """Move the cursor up or down, within the list."""
        self.selected = max(0, min(lines - 1, self.selected + by))

    def page_of(self, lines: int, height: int) -> range:
        """The visible lines, including the one under the cursor."""
        self.move(0, lines)
        if self.selected < self.first:
            self.first = self.selected
        if self.selected >= self.first + height:
            self.first = self.selected - height + 1
        self.first = max(0, min(self.first, max(0, lines - height)))
        return range(self.first, min(lines, self.first + height))

    def next_sort(self) -> None:
        """Switch to the next order of the list."""
        self.sort, self.turned = _after(SORTS, self.sort), False

    def next_group(self) -> None:
        """Group by the next column, or by none."""
        self.group, self.closed, self.selected = _after(("", *GROUPS), self.group), frozenset(), 0

    def fold(self, group: str) -> None:
        """Close a group, or open it again."""
        self.closed = self.closed ^ {group}

    def key(self, found: NodesAnswer) -> tuple[object, ...]:
        """What the lines of the list depend on; they are made anew only if it differs."""
        return (found.now, len(found.nodes), self.sort, self.turned, self.group, self.filter, self.closed)


def _after(known: tuple[str, ...], now: str) -> str:
    return known[(known.index(now) + 1) % len(known)]


def items_of(found: NodesAnswer, view: View) -> list[Item]:
    """The lines: nodes in their order, below the heads of their groups if there are groups."""
    terms = sieve(view.filter)
    nodes = ordered((node for node in found.nodes if meets(node, terms)), view.sort, view.turned)
    if not view.group:
        return [*nodes]
    groups: dict[str, list[NodeRow]] = {}
    for node in nodes:
        groups.setdefault(BY_KEY[view.group].value(node) or NONE, []).append(node)
    heads = sorted((_group(name, members) for name, members in groups.items()), key=lambda g: (-g.price, g.name))
    lines: list[Item] = []
    for head in heads:
        lines.append(head)
        if head.name not in view.closed:
            lines.extend(groups[head.name])
    return lines


def _group(name: str, nodes: list[NodeRow]) -> Group:
    sums = {}
    for column in columns_of("top"):
        if column.kind in LARGEST_FIRST:
            whole = sum(column.value(node) or 0 for node in nodes)
            sums[column.key] = whole / len(nodes) if column.kind == "share" else whole
    return Group(name=name, nodes=len(nodes), sums=sums)
