"""`--pool`: what `status` and `nodes` say of one NodePool, and of none that there is."""

import argparse
from pathlib import Path

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document, document
from dovetail.answers.shown.screen import Screen
from dovetail.answers.status.nodes import nodes_of
from dovetail.answers.status.status import status_of
from dovetail.cli.commands.status import show_nodes, show_status
from dovetail.cli.output import NEEDS_PERSON
from dovetail.model import names
from tests.cli.test_explain_node import OPEN, a_bound_pod, a_managed_node
from tests.cli.test_status_text import a_status, some_nodes
from tests.cli.worlds import a_ready_pool, a_world, looked
from worlds.manifests import pod_manifest

SCREEN = Screen(width=120)


def given(pool: str, check: bool = False) -> argparse.Namespace:
    return argparse.Namespace(pool=pool, check=check, output="text", selector="", sort="price")


def status(pool: str, found: Document | None = None) -> tuple[str, int]:
    return show_status(found or a_status(), given(pool, check=True), SCREEN)


def test_a_check_of_one_pool_does_not_end_with_another_pools_trouble() -> None:
    assert [status(pool)[1] for pool in ("", "default", "gpu")] == [NEEDS_PERSON, NEEDS_PERSON, 0]
    text = status("gpu")[0]
    assert "nothing needs a person" in text and "ip-10-0-3-17" not in text


@pytest.mark.parametrize("show", [show_status, show_nodes])
def test_a_pool_that_is_not_there_is_the_same_error_of_both(show: object) -> None:
    found, shown = (a_status(), show_status) if show is show_status else (some_nodes(), show_nodes)
    with pytest.raises(CommandFailed, match="--pool nix: there is no such NodePool of ours; there is default, gpu"):
        shown(found, given("nix"), SCREEN)


async def test_totals_needs_and_nodes_are_of_the_pool(tmp_path: Path) -> None:
    world = a_world(
        tmp_path,
        a_ready_pool(disruption=OPEN),
        a_ready_pool("batch", disruption=OPEN),
        a_ready_pool("idle"),
        *a_managed_node("n1"),
        *a_managed_node("n2", "batch"),
        *a_managed_node("n3", "batch"),
        a_bound_pod("web-1", "n1"),
        a_bound_pod("web-2", "n2"),
        pod_manifest("train", {"app": "train"}, nodeSelector={names.NODE_POOL: "batch"}, cpu="900"),
        pod_manifest("far", {"app": "far"}, nodeSelector={names.ZONE: "nowhere"}),
    )
    look = await looked(world)
    found = document("ClusterStatus", "demo", status_of(look))
    nodes = document("NodeList", "demo", nodes_of(look))
    whole, batch = found["totals"], {each["name"]: each for each in found["pools"]}["batch"]

    text = status("batch", found)[0]

    assert text.startswith("demo, NodePool batch · 2 nodes · 1 pod (1 pending) · $")
    assert batch["price"] == pytest.approx(whole["price"] * 2 / 3)
    assert (whole["pods"], whole["pendingPods"], batch["cpu"]["room"] / whole["cpu"]["room"]) == (
        2,
        2,
        pytest.approx(2 / 3),
    )
    assert show_nodes(nodes, given("idle"), SCREEN) == ("no nodes", 0), "it is a NodePool, which has none"
