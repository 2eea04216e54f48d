"""`dovetail nodes` for people, from the document that the worker's API answers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dovetail.answers.shown.documents import Document
from dovetail.answers.shown.screen import GOES_ON, WAITS, Screen
from dovetail.answers.shown.tables import Column, markdown_table, table
from dovetail.answers.status.asked_pool import check_pool
from dovetail.answers.status.orders import checked_sort, ordered
from dovetail.answers.status.terms import NOT_OURS, meets
from dovetail.answers.status.terms import selector as terms_of
from dovetail.answers.wording import duration_text, plural
from dovetail.model.time import parse_time

COLUMNS: Final = (
    Column(head="NODE", cut=True, least=24),
    Column(head="POOL", rank=5, cut=True),
    Column(head="TYPE", rank=3, cut=True),
    Column(head="MARKET", rank=4),
    Column(head="ZONE", rank=7),
    Column(head="AGE", rank=6, right=True),
    Column(head="$/H", right=True),
    Column(head="CPU", rank=1, right=True),
    Column(head="MEM", rank=2, right=True),
    Column(head="PODS", rank=2, right=True),
    Column(head="STATE"),
    Column(head="WHAT", rank=1, cut=True),
)
WIDE: Final = (Column(head="NODECLAIM", rank=8),)


def nodes_text(found: Document, screen: Screen, wide: bool = False) -> str:
    """A line a node."""
    now = parse_time(found["now"])
    nodes = found["nodes"]
    if not nodes:
        return "no nodes"
    rows = [
        (*node_cells(node, now, stays=stays_words(node)), node["claim"]) if wide else node_cells(node, now)
        for node in nodes
    ]
    columns = (*COLUMNS, *WIDE) if wide else COLUMNS
    lines = table(columns, rows, Screen(colours=screen.colours) if wide else screen, [node_colour(n) for n in nodes])
    return "\n".join([*lines, "", _sum(nodes)])


def _sum(nodes: list[dict[str, Any]]) -> str:
    others = [node for node in nodes if node["state"] == NOT_OURS]
    words = f"{plural(len(nodes), 'node')}, ${_price(nodes):,.2f}/h"
    return f"{words}; {len(others):,} of them not ours, ${_price(others):,.2f}/h" if others else words


def _price(nodes: list[dict[str, Any]]) -> float:
    return sum(node["price"] or 0.0 for node in nodes)


def node_colour(node: Mapping[str, Any]) -> str:
    """Of the line of a node."""
    if node["state"] == "ready":
        return WAITS if node["what"] else ""
    return "" if node["state"] == NOT_OURS else GOES_ON


def node_cells(
    node: Mapping[str, Any], now: float, use: Callable[[float], str] = "{:.0%}".format, stays: str = ""
) -> tuple[str, ...]:
    """A node under the heads of a table; `use` writes a share, `stays` stands where nothing becomes of it."""
    price = node["price"]
    return (
        node["name"],
        node["pool"],
        node["type"],
        node["capacityType"],
        node["zone"],
        duration_text(max(0, round(now - parse_time(node["since"])))),
        f"{price:.4f}" if price is not None else "–" if node["state"] == NOT_OURS else "?",
        use(node["cpuShare"]),
        use(node["memoryShare"]),
        str(node["pods"]),
        node["state"],
        node["what"] or stays,
    )


def stays_words(node: Mapping[str, Any]) -> str:
    """What keeps it, where a check does."""
    return f"stays: {node['stays']}" if node.get("stays") else ""


def nodes_markdown(found: Document) -> str:
    """For pull requests and tickets."""
    now = parse_time(found["now"])
    return "\n".join(markdown_table(COLUMNS, [node_cells(node, now) for node in found["nodes"]]))


def nodes_names(found: Document) -> str:
    """As kubectl takes them."""
    return "\n".join(_named(node) for node in found["nodes"])


def _named(node: Mapping[str, Any]) -> str:
    return f"nodeclaim.karpenter.sh/{node['claim']}" if node["claim"] else f"node/{node['name']}"


def chosen(found: Document, pool: str, selector: str, order: str) -> Document:
    """The nodes of that pool for which the selector's terms hold, in that order."""
    terms = terms_of(selector)
    if pool:
        # A worker of an older version names the NodePools of nodes alone.
        check_pool(pool, found["pools"] if "pools" in found else {node["pool"] for node in found["nodes"]})
    kept = [node for node in found["nodes"] if (not pool or node["pool"] == pool) and meets(node, terms)]
    return {**found, "nodes": ordered(kept, *checked_sort(order))}
