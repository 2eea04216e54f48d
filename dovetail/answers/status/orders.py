"""The orders of nodes, the same for `nodes --sort`, `top --sort` and the key `s`."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from dovetail.answers.failures import CommandFailed

Node = Mapping[str, Any]
N = TypeVar("N", bound=Node)

SORTS: Final = ("price", "age", "cpu", "memory", "pods", "name", "pool", "type", "zone")
SORT_HELP: Final = f"{', '.join(SORTS[:-1])} or {SORTS[-1]}; =asc, =desc"
_LARGEST_FIRST: Final = {"price": "price", "cpu": "cpuShare", "memory": "memoryShare", "pods": "pods"}
_WAYS: Final = ("", "asc", "desc", "dsc")


def checked_sort(text: str) -> tuple[str, bool]:
    """An order as a person types it: price, or price=asc; whether it is turned."""
    name, sign, way = text.partition("=")
    if name == "creation":  # as eks-node-viewer names it
        name = "age"
    if name not in SORTS or way not in _WAYS or (sign and not way):
        raise CommandFailed(f"--sort {text}: it is one of {', '.join(SORTS)}, with =asc or =desc behind it")
    if not way:
        return name, False
    falls = name in _LARGEST_FIRST
    return name, (way == "asc") == falls


def ordered(nodes: Iterable[N], sort: str, turned: bool = False) -> list[N]:
    """Equals by name. What is asked for largest first stands so unless the order is turned."""
    found = sorted(nodes, key=lambda node: str(node["name"]))
    if sort in _LARGEST_FIRST:
        field = _LARGEST_FIRST[sort]
        return sorted(found, key=lambda node: node[field] or 0.0, reverse=not turned)
    field = "since" if sort == "age" else sort
    return sorted(found, key=lambda node: str(node[field]), reverse=turned)
