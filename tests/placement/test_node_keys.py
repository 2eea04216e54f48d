"""Every row of docs/guides/node-keys.md is so (PLC-33 to PLC-36, PLC-64, API-34, LIF-33)."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dovetail.adapters.aws.provider import PROVIDER
from dovetail.lifecycle.initialization import blocker
from dovetail.lifecycle.pool_readiness import pool_faults
from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.scheduling.key_aliases import KEY_ALIASES
from dovetail.model.scheduling.requirements import requirement
from dovetail.model.scheduling.taints import Taint
from dovetail.placement.index.waiting_pods import expression_fault
from dovetail.placement.settings import PlacementSettings
from tests.placement.builders import (
    READY,
    a_general_pool,
    a_joined_pair,
    a_shape,
    a_snapshot,
    a_waiting_pod,
    one_of,
    placed,
)

PAGE: Final = Path(__file__).parents[2] / "docs/guides/node-keys.md"
SETTINGS: Final = PlacementSettings(well_known=names.WELL_KNOWN_LABELS | PROVIDER.labels)


def rows(title: str) -> list[tuple[str, str]]:
    """The keys of a table, each with what is done with it."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "`" in line]
    found = [(re.findall("`([^`]+)`", key)[0], done) for key, _, done in cells]
    assert len(found) > 15
    return found


def gets_a_node(key: str, labels: dict[str, str]) -> bool:
    """Whether a pod that asks for the label gets a node of a pool that gives these."""
    pool = a_general_pool()
    pool = replace(pool, template=replace(pool.template, labels=labels))
    return bool(
        placed(a_snapshot([a_waiting_pod("p", shape=a_shape(node_selector=((key, "a"),)))], pools=[pool]), SETTINGS).new
    )


@pytest.mark.parametrize(("key", "done"), rows("Labels"))
def test_a_label_is_what_the_page_says(key: str, done: str) -> None:
    name, of = (done.split("`")[0].rstrip(" ("), re.findall("`([^`]+)`", done))
    fault = expression_fault(one_of(key, "a" if key != names.CAPACITY_TYPE else "spot"), SETTINGS.well_known)
    refused = pool_faults(a_general_pool(requirements=(one_of(key, "spot"),)))
    match name:
        case "another name":
            assert ([requirement(key, "In", ("a",)).key], fault, refused) == (of, "", ())
            assert of[0] in SETTINGS.well_known
        case "well known":
            assert (key in SETTINGS.well_known, requirement(key, "In", ("a",)).key, fault) == (True, key, "")
            assert bool(refused) is (key == names.NODE_POOL)
        case "the pool's own":
            assert (key in SETTINGS.well_known, requirement(key, "In", ("a",)).key, fault) == (False, key, "")
            assert refused == ()
            assert (gets_a_node(key, {}), gets_a_node(key, {key: "a"})) == (False, True)
        case "restricted":
            assert "restricted" in fault and "restricted" in "".join(refused)
        case _:
            pytest.fail(f"{done!r} is nothing that a test knows")


def test_every_other_name_of_a_label_is_on_the_page() -> None:
    assert {key for key, done in rows("Labels") if done.startswith("another name")} == set(KEY_ALIASES)


def becoming(*taints: Taint, startup: tuple[Taint, ...] = ()) -> tuple[Node, NodeClaim]:
    """A registered node that is not initialised yet."""
    node, claim = a_joined_pair("n1", labels={names.INITIALIZED: "false"}, taints=taints, conditions=(READY,))
    return node, replace(claim, startup_taints=startup)


def takes_a_pod(pair: tuple[Node, NodeClaim]) -> bool:
    return "n1" in placed(a_snapshot([a_waiting_pod("p")], [pair]), SETTINGS).existing


def waits_for(pair: tuple[Node, NodeClaim]) -> str:
    """What keeps the node from being initialised."""
    why = blocker(pair[1], (pair[0],))
    return why[0] if why is not None else ""


@pytest.mark.parametrize(("written", "done"), rows("Taints"))
def test_a_taint_is_what_the_page_says(written: str, done: str) -> None:
    key, effect = written.rsplit(":", 1)
    taint = Taint(key=key, effect=effect)
    plain, listed = becoming(taint), becoming(taint, startup=(taint,))
    match done:
        case "goes by itself":
            assert (takes_a_pod(plain), waits_for(plain)) == (True, "KnownEphemeralTaintsExist")
        case "start-up taint":
            assert (takes_a_pod(listed), waits_for(listed)) == (True, "StartupTaintsExist")
            assert (takes_a_pod(plain), waits_for(plain)) == (False, "")
        case "a taint":
            assert (takes_a_pod(plain), waits_for(plain)) == (False, "")
        case _:
            pytest.fail(f"{done!r} is nothing that a test knows")
    initialised = a_joined_pair("n1", taints=(taint,))
    assert not takes_a_pod(initialised)
