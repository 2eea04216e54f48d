"""What the person at `dovetail top` has chosen to see: order, groups, filter, page, the line under the cursor.

Nothing here knows a terminal: a key changes the view, and a frame is drawn from it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.cli.output import CommandFailed
from dovetail.cli.shown.documents import Document
from dovetail.cli.status.terms import meets, sieve

Node = dict[str, Any]

SORTS: Final = ("price", "age", "cpu", "memory", "pods", "name", "pool", "type", "zone")
GROUPS: Final = ("", "pool", "zone", "type")
_FIELDS: Final = {"pool": "pool", "zone": "zone", "type": "type", "name": "name"}
_LARGEST_FIRST: Final = {"price": "price", "cpu": "cpuShare", "memory": "memoryShare", "pods": "pods"}
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
    nodes = _sorted([node for node in found["nodes"] if meets(node, terms)], view)
    if not view.group:
        return list(nodes)
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node[_FIELDS[view.group]] or NONE, []).append(node)
    heads = sorted((_group(name, members) for name, members in groups.items()), key=lambda g: (-g.price, g.name))
    lines: list[Item] = []
    for head in heads:
        lines.append(head)
        if head.name not in view.closed:
            lines.extend(groups[head.name])
    return lines


def _sorted(nodes: list[Node], view: View) -> list[Node]:
    """Equals by name. What is asked for largest first stands so unless the order is turned."""
    nodes.sort(key=lambda node: str(node["name"]))
    if view.sort in _LARGEST_FIRST:
        name = _LARGEST_FIRST[view.sort]
        nodes.sort(key=lambda node: node[name] or 0.0, reverse=not view.turned)
    else:
        name = _FIELDS.get(view.sort, "since")
        nodes.sort(key=lambda node: str(node[name]), reverse=view.turned)
    return nodes


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


def checked_sort(text: str) -> tuple[str, bool]:
    """An order as a person types it: price, or price=asc; whether it is turned."""
    name, _, way = text.partition("=")
    if name == "creation":  # as eks-node-viewer names it
        name = "age"
    if name not in SORTS or way not in ("", "asc", "dsc", "desc"):
        raise CommandFailed(f"--sort {text}: it is one of {', '.join(SORTS)}, with =asc or =dsc behind it")
    if not way:
        return name, False
    falls = name in _LARGEST_FIRST
    return name, (way == "asc") == falls
