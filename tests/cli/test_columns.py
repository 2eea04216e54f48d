"""The one list of columns of a node: each has its field and its value, and everything that shows nodes shows it."""

from collections import Counter
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from dovetail.answers.shown.documents import camel
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.answer import NodeRow
from dovetail.answers.status.columns import COLUMNS, EVERYWHERE, FIELDS, GROUPS, SORTS, View, page_columns
from dovetail.answers.status.nodes import nodes_of
from dovetail.answers.status.nodes_text import nodes_markdown, nodes_text
from dovetail.answers.status.orders import SORT_HELP
from dovetail.cli.completion.words import completions
from dovetail.cli.main import parser
from dovetail.cli.top.drawing import Shown, Size, frame
from dovetail.cli.top.top import HELP
from dovetail.cli.top.view import View as Chosen
from dovetail.cli.top.view import items_of
from dovetail.model import names
from tests.cli.fleet import the_nodes
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.test_status_text import a_status, status_in
from tests.cli.worlds import a_ready_pool, a_world, looked

ROOT = Path(__file__).parents[2]
GUIDE = "docs/guides/command-line.md"
NO_COLUMN = {"labels", "stays"}  # `stays` stands under WHAT, and of labels a person chooses those of `top`
ALWAYS_SENT = "name claim pool type zone capacity_type since price cpu_share memory_share pods state"
ENDLESS = 1000


def heads_in(view: View) -> list[str]:
    """As they are shown there."""
    nodes, screen = the_nodes(60), Screen(width=ENDLESS)
    match view:
        case "nodes" | "wide":
            line = nodes_text(nodes, screen, wide=view == "wide").splitlines()[0]
            if view == "nodes":
                assert nodes_markdown(nodes).splitlines()[0].strip("| ").split(" | ") == line.split()
        case "top":
            shown = Shown(status=status_in(a_status()), nodes=nodes, items=items_of(nodes, Chosen()))
            size = Size(columns=ENDLESS, lines=20)
            line = next(line for line in frame(shown, Chosen(), size, screen) if line.strip().startswith("NODE"))
        case "page":
            columns = page_columns()["columns"]
            assert isinstance(columns, list)
            return [each["field"] for each in columns]
    return line.split()


@pytest.mark.parametrize("view", EVERYWHERE)
def test_every_view_has_the_columns_that_stand_in_it(view: View) -> None:
    wanted = [column for column in COLUMNS if view in column.views]
    assert heads_in(view) == [camel(column.field) if view == "page" else column.head for column in wanted]


def test_every_field_of_a_node_is_a_column_and_every_column_a_field() -> None:
    found = {field.name for field in fields(NodeRow)}
    assert {column.field for column in COLUMNS} | NO_COLUMN == found


def test_a_field_has_a_default_unless_every_worker_sends_it() -> None:
    required = {each.name for each in fields(NodeRow) if each.default is each.default_factory is MISSING}
    assert required == set(ALWAYS_SENT.split()), "a worker of an older version does not send a new field"


async def test_every_column_has_a_value_of_a_node_of_the_cluster(tmp_path: Path) -> None:
    claim, node = a_managed_node()
    drifted = {**claim["status"]["conditions"][0], "type": names.DRIFTED}
    claim["status"]["conditions"].append(drifted)
    world = a_world(tmp_path, a_ready_pool(disruption=OPEN), claim, node, a_bound_pod("web-1", "n1"))

    [row] = nodes_of(await looked(world)).nodes

    assert [column.key for column in COLUMNS if not column.value(row)] == []


def test_keys_are_typed_once_and_name_orders_fields_and_groups() -> None:
    assert [key for key, count in Counter(column.key for column in COLUMNS).items() if count > 1] == []
    assert {*SORTS, *FIELDS, *GROUPS} <= {column.key for column in COLUMNS}
    assert SORTS == ("price", "age", "cpu", "memory", "pods", "name", "pool", "type", "zone")


def test_orders_and_fields_are_completed_and_in_the_help_and_the_guide() -> None:
    def completed(*words: str) -> list[str]:
        return completions(parser(), words, lambda where, kind: ())

    assert completed("nodes", "--sort", "") == completed("top", "--sort", "") == list(SORTS)
    assert completed("nodes", "-l", "") == completed("replace", "-l", "") == [f"{key}=" for key in FIELDS]
    assert completed("top", "--group", "") == list(GROUPS)
    help_of_top, guide = "\n".join(HELP), (ROOT / GUIDE).read_text()
    assert [key for key in SORTS if key not in SORT_HELP or key not in help_of_top] == []
    assert [key for key in FIELDS if key not in help_of_top or f"`{key}`" not in guide] == []
