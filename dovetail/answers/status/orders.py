"""The orders of nodes, the same for `nodes --sort`, `top --sort` and the key `s`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.status.columns import BY_KEY, LARGEST_FIRST, SORTS

if TYPE_CHECKING:
    from dovetail.answers.status.answer import NodeRow

SORT_HELP: Final = f"{', '.join(SORTS[:-1])} or {SORTS[-1]}; =asc, =desc"
_DIRECTIONS: Final = ("", "asc", "desc", "dsc")


def checked_sort(text: str) -> tuple[str, bool]:
    """An order as people type it: price, or price=asc; and whether it is reversed."""
    name, sign, direction = text.partition("=")
    if name == "creation":  # eks-node-viewer's name for it
        name = "age"
    if name not in SORTS or direction not in _DIRECTIONS or (sign and not direction):
        raise CommandFailed(f"--sort {text}: it is one of {', '.join(SORTS)}, with =asc or =desc behind it")
    if not direction:
        return name, False
    falls = BY_KEY[name].kind in LARGEST_FIRST
    return name, (direction == "asc") == falls


def ordered(nodes: "Iterable[NodeRow]", sort: str, turned: bool = False) -> "list[NodeRow]":
    """Nodes with equal values are ordered by name. Figures are in falling order unless the order is reversed."""
    column = BY_KEY[sort]
    found = sorted(nodes, key=lambda node: node.name)
    falls = column.kind in LARGEST_FIRST
    nothing = "" if column.kind == "text" else 0.0
    return sorted(found, key=lambda node: column.value(node) or nothing, reverse=falls != turned)
