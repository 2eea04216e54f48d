"""What the person at `dovetail top` has chosen to see: order, groups, filter, page, the line under the cursor.

Nothing here knows a terminal: a key changes the view, and a frame is drawn from it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.answers.shown.documents import Document
from dovetail.answers.status.orders import SORTS, ordered
from dovetail.answers.status.terms import meets, sieve

Node = dict[str, Any]

GROUPS: Final = ("", "pool", "zone", "type")
NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes that have something in common, with their sum."""

    name: str
    nodes: int
    price: float
    cpu: float  # the mean share
    memory: float
    pods: int


Item = Node | Group  # a line of the list


@dataclass(slots=True, kw_only=True)
class View:
    """What is shown of the nodes. `selected` counts among the lines of the list."""

    sort: str = "price"
    turned: bool = False  # the other way round
    group: str = ""
    filter: str = ""
    extra: tuple[str, ...] = ()  # labels with a column of their own
    selected: int = 0
    first: int = 0  # the first line of the page
    closed: frozenset[str] = field(default=frozenset())  # groups that show their sum alone

    def move(self, by: int, lines: int) -> None:
        """The cursor up or down, within what there is."""
        self.selected = max(0, min(lines - 1, self.selected + by))

    def page_of(self, lines: int, height: int) -> range:
        """The lines that are shown, the one under the cursor among them."""
        self.move(0, lines)
        if self.selected < self.first:
            self.first = self.selected
        if self.selected >= self.first + height:
            self.first = self.selected - height + 1
        self.first = max(0, min(self.first, max(0, lines - height)))
        return range(self.first, min(lines, self.first + height))

    def next_sort(self) -> None:
        """The next order of the list."""
        self.sort, self.turned = _after(SORTS, self.sort), False

    def next_group(self) -> None:
        """Grouped by the next thing, or by none."""
        self.group, self.closed, self.selected = _after(GROUPS, self.group), frozenset(), 0

    def fold(self, group: str) -> None:
        """Close a group, or open it again."""
        self.closed = self.closed ^ {group}

    def key(self, found: Document) -> tuple[object, ...]:
        """What the lines of the list depend on; they are made anew only where it differs."""
        return (found["now"], len(found["nodes"]), self.sort, self.turned, self.group, self.filter, self.closed)


def _after(known: tuple[str, ...], now: str) -> str:
    return known[(known.index(now) + 1) % len(known)]


def items_of(found: Document, view: View) -> list[Item]:
    """The lines: nodes in their order, below the heads of their groups where there are groups."""
    terms = sieve(view.filter)
    nodes = ordered((node for node in found["nodes"] if meets(node, terms)), view.sort, view.turned)
    if not view.group:
        return list(nodes)
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node[view.group] or NONE, []).append(node)
    heads = sorted((_group(name, members) for name, members in groups.items()), key=lambda g: (-g.price, g.name))
    lines: list[Item] = []
    for head in heads:
        lines.append(head)
        if head.name not in view.closed:
            lines.extend(groups[head.name])
    return lines


def _group(name: str, nodes: list[Node]) -> Group:
    count = len(nodes)
    return Group(
        name=name,
        nodes=count,
        price=sum(node["price"] or 0.0 for node in nodes),
        cpu=sum(node["cpuShare"] for node in nodes) / count,
        memory=sum(node["memoryShare"] for node in nodes) / count,
        pods=sum(node["pods"] for node in nodes),
    )
