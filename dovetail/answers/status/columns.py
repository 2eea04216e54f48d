"""The one list of a node's columns, used by the tables of `nodes` and `top`, the web page, orders, filters and
completion. Each column shows a field of `NodeRow`.

The engines are not loaded: `--help` and completion read this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from dovetail.answers.shown.documents import camel
from dovetail.answers.shown.tables import Column

if TYPE_CHECKING:
    from dovetail.answers.status.answer import NodeRow

View = Literal["nodes", "wide", "top", "page"]
# How a value is written, summed up for a group, and ordered: prices, shares and counts in falling order.
Kind = Literal["text", "age", "price", "share", "count", "what"]

EVERYWHERE: Final[tuple[View, ...]] = ("nodes", "wide", "top", "page")
LARGEST_FIRST: Final = frozenset({"price", "share", "count"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeColumn(Column):
    """One column. `rank` and `least` are those of `nodes`; `top` may have its own, since its bars take room."""

    key: str  # as people type it
    field: str  # of NodeRow
    kind: Kind = "text"
    sorts: bool = False  # an order of --sort and of the key `s`
    term: bool = False  # a KEY of -l and of filters
    views: tuple[View, ...] = EVERYWHERE
    top_rank: int | None = None
    top_least: int | None = None
    page_head: str = ""  # empty: the head in lower case
    page_label: bool = False  # is shown before the value if the page is too narrow for heads

    def value(self, node: "NodeRow") -> Any:
        return getattr(node, self.field)


COLUMNS: Final = (
    NodeColumn(key="name", head="NODE", field="name", sorts=True, cut=True, least=24, top_least=20),
    NodeColumn(
        key="pool", head="POOL", field="pool", sorts=True, term=True, rank=5, cut=True, top_least=7, page_label=True
    ),
    NodeColumn(key="type", head="TYPE", field="type", sorts=True, term=True, rank=3, cut=True),
    NodeColumn(key="market", head="MARKET", field="capacity_type", term=True, rank=4, top_rank=6),
    NodeColumn(key="zone", head="ZONE", field="zone", sorts=True, term=True, rank=7, top_rank=8),
    NodeColumn(key="age", head="AGE", field="since", kind="age", sorts=True, rank=6, top_rank=7, right=True),
    NodeColumn(key="price", head="$/H", field="price", kind="price", sorts=True, right=True),
    NodeColumn(key="cpu", head="CPU", field="cpu_share", kind="share", sorts=True, rank=1, right=True),
    NodeColumn(
        key="memory",
        head="MEM",
        field="memory_share",
        kind="share",
        sorts=True,
        rank=2,
        top_rank=4,
        right=True,
        page_head="memory",
    ),
    NodeColumn(key="pods", head="PODS", field="pods", kind="count", sorts=True, rank=2, right=True),
    NodeColumn(key="state", head="STATE", field="state", term=True),
    NodeColumn(key="what", head="WHAT", field="what", kind="what", rank=1, cut=True),
    NodeColumn(key="claim", head="NODECLAIM", field="claim", rank=8, views=("wide",)),
)
GROUPS: Final = ("pool", "zone", "type")  # the columns by which `top` and the page group nodes

BY_KEY: Final = {column.key: column for column in COLUMNS}
# Prices first, then the other figures, then words.
SORTS: Final = tuple(
    column.key
    for column in sorted(COLUMNS, key=lambda column: (column.kind != "price", column.kind == "text"))
    if column.sorts
)
FIELDS: Final = {column.key: column.field for column in COLUMNS if column.term}
# The fields in which a filter's words are searched.
WORDS: Final = (*(column.field for column in COLUMNS if column.kind in ("text", "what")), "stays")


def columns_of(view: View) -> Sequence[NodeColumn]:
    """The columns of that view, in its order."""
    found = [column for column in COLUMNS if view in column.views]
    return [_in_top(column) for column in found] if view == "top" else found


def _in_top(column: NodeColumn) -> NodeColumn:
    rank = column.rank if column.top_rank is None else column.top_rank
    return replace(column, rank=rank, least=column.top_least or column.least)


def page_columns() -> Mapping[str, object]:
    """The columns for the web page, which is written in JavaScript, with the names that documents give the fields."""
    shown = [
        {
            "head": column.page_head or column.head.lower(),
            "field": camel(column.field),
            "kind": column.kind,
            "isLargestFirst": column.kind in LARGEST_FIRST,
            "isLabelled": column.page_label or column.kind not in ("text", "what"),
        }
        for column in columns_of("page")
    ]
    return {
        "columns": shown,
        "groups": [camel(BY_KEY[key].field) for key in GROUPS],
        "fields": {key: camel(field) for key, field in FIELDS.items()},
        "words": [camel(field) for field in WORDS],
    }
