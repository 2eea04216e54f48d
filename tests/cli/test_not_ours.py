"""Nodes that are not ours: listed with what is known of them, counted, chosen by terms, and changed by nobody."""

import argparse
from pathlib import Path

import pytest

from dovetail.answers.shown.documents import Document, document
from dovetail.answers.status.nodes import nodes_of
from dovetail.answers.status.nodes_text import chosen, nodes_names
from dovetail.answers.status.status import status_of
from dovetail.cli.top.questions import Look, Questions
from dovetail.cli.top.top import Top
from dovetail.cli.top.view import View, items_of
from dovetail.model import names
from dovetail.model.values.json import Json
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.test_status_text import a_status, nodes_in, some_nodes, status_in
from tests.cli.worlds import a_ready_pool, a_world, looked
from worlds.manifests import node_manifest

EKS_MARKET = "eks.amazonaws.com/capacityType"


def _of_a_group(name: str, kind: str, market: str = "ON_DEMAND") -> Json:
    """A node of a managed node group, as EKS labels it."""
    node = node_manifest(name)
    node["spec"]["providerID"] = f"embedded://{name}"
    node["metadata"]["labels"] |= {names.ZONE: "test-zone-a", names.INSTANCE_TYPE: kind, EKS_MARKET: market}
    return node


@pytest.fixture
async def found(tmp_path: Path) -> tuple[Document, Document]:
    """Nodes and status of a cluster with one node of ours and three that are not."""
    world = a_world(
        tmp_path,
        a_ready_pool(disruption=OPEN),
        *a_managed_node(),
        _of_a_group("group-1", "c-4x-amd64-linux"),
        _of_a_group("group-2", "odd.metal"),
        _of_a_group("group-3", "c-4x-amd64-linux", "SPOT"),
        a_bound_pod("web-1", "group-1"),
    )
    look = await looked(world)
    return document("NodeList", "demo", nodes_of(look)), document("ClusterStatus", "demo", status_of(look))


async def test_they_have_their_type_market_zone_use_and_the_price_of_the_catalogue(
    found: tuple[Document, Document],
) -> None:
    rows = {node["name"]: node for node in found[0]["nodes"]}
    ours, known, unknown, spot = (rows[name] for name in ("n1", "group-1", "group-2", "group-3"))

    assert [node["state"] for node in (known, unknown, spot)] == ["not ours"] * 3 and ours["state"] == "ready"
    assert (known["type"], known["capacityType"], known["zone"]) == ("c-4x-amd64-linux", "on-demand", "test-zone-a")
    assert known["price"] == ours["price"] and unknown["price"] is None
    assert spot["capacityType"] == "spot" and 0 < spot["price"] < known["price"]
    assert (known["pods"], unknown["pods"]) == (1, 0) and known["cpuShare"] > 0
    assert {node["stays"] for node in (known, unknown, spot)} == {""}


async def test_totals_count_them_and_their_price_is_not_among_that_of_the_claims(
    found: tuple[Document, Document],
) -> None:
    totals = found[1]["totals"]
    ours = next(node for node in found[0]["nodes"] if node["name"] == "n1")
    assert (totals["nodes"], totals["notOurs"], totals["claims"]) == (4, 3, 1)
    assert totals["price"] == pytest.approx(ours["price"])


async def test_terms_choose_them_and_kubectl_takes_their_names(found: tuple[Document, Document]) -> None:
    names_of = [nodes_names(chosen(found[0], "", term, "name")[1]) for term in ("state=not-ours", "state!=not-ours")]
    assert names_of == ["node/group-1\nnode/group-2\nnode/group-3", "nodeclaim.karpenter.sh/claim-n1"]
    assert len(items_of(nodes_in(found[0]), View(filter="not ours", sort="price"))) == 3


class Written(Questions):
    """Notes commands and carries none out."""

    def __init__(self) -> None:
        super().__init__(argparse.Namespace(every=2.0), lambda: None)
        self.typed: list[tuple[str, ...]] = []

    def command(self, *words: str) -> None:
        self.typed.append(words)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("c", "is not ours: nobody can cancel it here"),
        ("R", "is not ours: nobody can replace it here"),
        ("N", "is not ours: nobody can replace it here"),
        ("P", "move to a node of one of our NodePools first"),
        ("U", "move to a node of one of our NodePools first"),
    ],
)
def test_no_key_changes_anything_for_one_that_is_not_ours(key: str, said: str) -> None:
    written = Written()
    top = Top(View(filter="state=not-ours"), written)
    nodes = nodes_in(some_nodes())
    top.take(Look(status=status_in(a_status()), nodes=nodes))
    assert top.shown is not None
    top.shown.items = items_of(nodes, top.view)

    top.press(key)

    assert said in top.shown.says and top.shown.prompt is None and written.typed == []
