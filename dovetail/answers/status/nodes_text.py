"""`dovetail nodes` for people: the choice of nodes, their order, and each one's line of cells."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dovetail.answers.shown.documents import Document, read_document
from dovetail.answers.shown.screen import GOES_ON, WAITS, Screen
from dovetail.answers.shown.tables import bar, markdown_table, table
from dovetail.answers.status.answer import NOT_OURS, NodeRow, NodesAnswer
from dovetail.answers.status.asked_pool import check_pool
from dovetail.answers.status.columns import NodeColumn, View, columns_of
from dovetail.answers.status.orders import checked_sort, ordered
from dovetail.answers.status.terms import meets
from dovetail.answers.status.terms import selector as terms_of
from dovetail.answers.wording import age_text, plural

BAR_CELLS: Final = 5


def nodes_text(found: NodesAnswer, screen: Screen, wide: bool = False) -> str:
    if not found.nodes:
        return "no nodes"
    columns, rows = _table(found, "wide" if wide else "nodes")
    colours = [node_colour(node) for node in found.nodes]
    lines = table(columns, rows, Screen(colours=screen.colours) if wide else screen, colours)
    return "\n".join([*lines, "", _sum(found.nodes)])


def _table(found: NodesAnswer, view: View) -> tuple[Sequence[NodeColumn], list[tuple[str, ...]]]:
    columns = columns_of(view)
    return columns, [node_cells(node, columns, found.now, view) for node in found.nodes]


def _sum(nodes: Sequence[NodeRow]) -> str:
    others = [node for node in nodes if node.state == NOT_OURS]
    words = f"{plural(len(nodes), 'node')}, ${_price(nodes):,.2f}/h"
    return f"{words}; {len(others):,} of them not ours, ${_price(others):,.2f}/h" if others else words


def _price(nodes: Sequence[NodeRow]) -> float:
    return sum(node.price or 0.0 for node in nodes)


def node_colour(node: NodeRow) -> str:
    if node.state == "ready":
        return WAITS if node.what else ""
    return "" if node.state == NOT_OURS else GOES_ON


def node_cells(node: NodeRow, columns: Sequence[NodeColumn], now: float, view: View) -> tuple[str, ...]:
    return tuple(_cell(node, column, now, view) for column in columns)


def _cell(node: NodeRow, column: NodeColumn, now: float, view: View) -> str:
    value = column.value(node)
    match column.kind:
        case "age":
            return age_text(now - value)
        case "price" if value is None:
            return "–" if node.state == NOT_OURS else "?"
        case "price":
            return f"{value:.4f}"
        case "share":
            return use_text(value) if view == "top" else f"{value:.0%}"
        case "what" if view != "nodes" and node.stays:
            return value or f"stays: {node.stays}"
    return str(value)


def use_text(share: float) -> str:
    """The use as a bar, with the figure."""
    return f"{bar(share, BAR_CELLS)} {share:4.0%}"


def nodes_markdown(found: NodesAnswer) -> str:
    """The table for pull requests and tickets."""
    return "\n".join(markdown_table(*_table(found, "nodes")))


def nodes_names(found: NodesAnswer) -> str:
    """The names as kubectl accepts them."""
    return "\n".join(f"nodeclaim.karpenter.sh/{n.claim}" if n.claim else f"node/{n.name}" for n in found.nodes)


def chosen(found: Document, pool: str, selector: str, order: str) -> tuple[Document, NodesAnswer]:
    """The nodes of that pool that meet the selector's terms, in that order: both as in the document, with a newer
    worker's fields, and as this version reads them."""
    terms = terms_of(selector)
    answer = read_document(NodesAnswer, found)
    if pool:
        check_pool(pool, answer.pools)
    kept = (node for node in answer.nodes if (not pool or node.pool == pool) and meets(node, terms))
    nodes = tuple(ordered(kept, *checked_sort(order)))
    documents = {id(node): each for node, each in zip(answer.nodes, found["nodes"], strict=True)}
    return {**found, "nodes": [documents[id(node)] for node in nodes]}, replace(answer, nodes=nodes)
