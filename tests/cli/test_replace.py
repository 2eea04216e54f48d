"""`dovetail replace`: what is written where, what is refused before anything is, and for which cluster."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.answers.shown.documents import document
from dovetail.cli import local
from dovetail.cli.main import OTHER_CLUSTER, main
from dovetail.cli.orders import compared
from dovetail.connection.owner import OtherCluster
from dovetail.model import names
from dovetail.model.values.time import format_time
from dovetail.rules.brake.breakers import Breaker, Happened, with_breaker
from testbed.simulated_world import SimulatedWorld
from tests.cli.fleet import the_nodes
from tests.cli.test_explain_node import a_managed_node
from tests.cli.test_pauses import target
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world
from worlds.disruption import a_pool as a_node_pool
from worlds.manifests import node_manifest

WHY = ("--reason", "a bad disk")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedWorld:
    """Two nodes of ours, and one that is not."""
    monkeypatch.setenv("LOGNAME", "alice")
    made = a_world(tmp_path, a_ready_pool(), *a_managed_node("n1"), *a_managed_node("n2"), node_manifest("foreign"))
    for claim in made.objects("NodeClaim"):
        owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
        owner |= {key: claim["metadata"][key] for key in ("name", "uid")}
        made.patch("Node", claim["status"]["nodeName"], {"metadata": {"ownerReferences": [owner]}})
    return made


def typed(world: SimulatedWorld, *words: str) -> int:
    return main(["replace", *words, *WHY, "--cluster", CLUSTER, "--world", str(world.file)])


def asked_for(world: SimulatedWorld) -> Mapping[str, str]:
    """The requests that are written, by claim, each with its author behind the reason."""
    found = {c["metadata"]["name"]: c["metadata"].get("annotations") or {} for c in world.objects("NodeClaim")}
    return {n: f"{a[names.REPLACE]} / {a.get(names.REPLACE_BY)}" for n, a in found.items() if names.REPLACE in a}


def test_an_answer_names_the_cluster_that_it_was_carried_out_on(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(world, "n1", "claim-n1") == 0

    assert asked_for(world) == {"claim-n1": "a bad disk / alice"}
    [line, _, which] = capsys.readouterr().out.splitlines()
    assert line.startswith("n1: asked for on NodeClaim claim-n1") and which == target(world)


def test_the_nodes_of_another_cluster_of_the_name_are_left_alone(
    world: SimulatedWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def connect(_: object) -> str:
        return "client"

    async def check(*_: object) -> tuple[str, ...]:
        raise OtherCluster("demo belongs to another cluster")

    monkeypatch.setattr(compared, "connect", connect)
    monkeypatch.setattr(compared, "check_owner", check)

    assert typed(world, "n1") == OTHER_CLUSTER
    assert asked_for(world) == {}
    assert capsys.readouterr().err == "dovetail: demo belongs to another cluster\n"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nope", "nope: there is no such Node or NodeClaim"),
        ("foreign", "foreign: it belongs to no NodeClaim, and is not ours to replace"),
    ],
)
def test_a_name_that_cannot_be_replaced_takes_none_of_the_others_along(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    assert typed(world, "n1", name) == 1
    assert asked_for(world) == {}
    assert capsys.readouterr().err == f"dovetail: {why}\n"


def test_a_dry_run_lists_the_nodes_and_writes_nothing(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(world, "n1", "n2", "--dry-run", "--wait") == 0

    assert asked_for(world) == {}
    assert capsys.readouterr().out.splitlines() == [
        "n1: would be asked for on NodeClaim claim-n1",
        "n2: would be asked for on NodeClaim claim-n2",
        "2 nodes; nothing was written",
        target(world),
    ]


def test_nodes_are_chosen_from_here_where_no_worker_is_to_be_asked(
    world: SimulatedWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a kubeconfig, by which a worker could be asked."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")

    async def listed(*_: object) -> Any:
        states = {"n1": "ready", "n2": "terminating"}
        one = the_nodes(1).nodes[0]
        nodes = [replace(one, name=n, claim=f"claim-{n}", pool="default", state=state) for n, state in states.items()]
        found = document("NodeList", "demo", replace(the_nodes(0), nodes=tuple(nodes)))
        return SimpleNamespace(document=lambda: found)

    monkeypatch.setattr(local, "answered", listed)

    assert typed(world, "--pool", "default") == 0
    assert list(asked_for(world)) == ["claim-n1"]
    assert typed(world, "-l", "pool=other") == 1
    assert "replace: no node matches pool=other" in capsys.readouterr().err


def test_who_asks_learns_what_failed_in_the_pool_and_is_not_held(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = tuple(Happened(1700000000.0 + n, f"{n}") for n in (0, 1))
    opened = Breaker(reason="Drifted", failures=failures, opened=1700000001.0)
    failed = with_breaker(a_node_pool(), opened).annotations[names.BREAKER]
    world.patch("NodePool", "default", {"metadata": {"annotations": {names.BREAKER: failed}}})

    assert typed(world, "n1") == 0
    assert "beware: NodePool default: 2 replacements for Drifted have failed" in capsys.readouterr().out.splitlines()
    assert list(asked_for(world)) == ["claim-n1"]


@pytest.mark.parametrize("urgent", [(), ("--now",)])
def test_a_node_that_rests_after_a_failure_is_asked_for_anew_and_one_after_a_cancel_is_said_to_wait(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str], urgent: tuple[str, ...]
) -> None:
    until = round(time.time() + 900)
    for name, text in (("n1", f"{until}/7/Drifted"), ("n2", f"{until}/1/Empty/cancelled")):
        world.patch("NodeClaim", f"claim-{name}", {"metadata": {"annotations": {names.REST: text}}})

    assert typed(world, "n1", *urgent) == 0
    assert any("within seconds" in line for line in capsys.readouterr().out.splitlines())
    assert typed(world, "n2", *urgent) == 0
    lines = capsys.readouterr().out.splitlines()

    rests = {c["metadata"]["name"]: c["metadata"]["annotations"].get(names.REST) for c in world.objects("NodeClaim")}
    assert rests == {"claim-n1": None, "claim-n2": f"{until}/1/Empty/cancelled"}
    held = f"its last disruption was called off, and it rests until {format_time(until)}"
    assert f"n2: it waits, as {held}; look: dovetail explain node n2" in lines
    assert not any("within seconds" in line for line in lines)
    assert list(asked_for(world)) == ["claim-n1", "claim-n2"]


def test_a_request_that_a_hook_denies_is_said_to_wait(
    world: SimulatedWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = {"metadata": {"annotations": {f"{names.PRE_DRAIN_HOOK}mesh": "deny: a backup runs"}}}
    world.patch("NodeClaim", "claim-n1", denied)

    assert typed(world, "n1", "n2", "--now") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "n1: it waits, as hook mesh denies it: a backup runs; look: dovetail explain node n1" in lines
    assert any("within seconds" in line for line in lines), "of n2"
