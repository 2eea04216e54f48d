"""What `dovetail status` and `dovetail nodes` print at 80, 120 and 200 columns, held line by line.

The captures that docs/guides/command-line.md names stand in tests/cli/golden; `DOVETAIL_GOLDEN=write` writes them anew,
to be looked at before they are committed.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dovetail.answers.failures import CommandFailed
from dovetail.answers.rollouts.answer import GateShown, RolloutShown, StepShown
from dovetail.answers.shown.documents import Document, document, read_document
from dovetail.answers.shown.screen import Screen
from dovetail.answers.shown.tables import Column, table
from dovetail.answers.status.answer import (
    NOT_OURS,
    Allowed,
    ClusterStatus,
    Done,
    Move,
    Need,
    NodeRow,
    NodesAnswer,
    PoolStatus,
    StatusAnswer,
    Totals,
    Use,
)
from dovetail.answers.status.nodes_text import chosen, nodes_text
from dovetail.answers.status.text import status_markdown, status_names, status_text
from dovetail.cli.shown.formats import as_json, as_yaml

GOLDEN = Path(__file__).parent / "golden"
NOW = 1_780_000_000.0
GIB = 2.0**30


ROLLOUTS = (
    RolloutShown(
        name="default-7f3c9a51d0",
        pool="default",
        state="Awaiting",
        total=120,
        target=30,
        leaving=0,
        steps=(
            StepShown(name="canary", nodes=1, place="done", soak=1800.0),
            StepShown(name="quarter", nodes=30, place="now", soak=3600.0, asks=True),
            StepShown(name="rest", nodes=120, place="to come", soak=900.0),
        ),
        gates=(GateShown(name="nodes", result="Passing"),),
        since=NOW - 2700,
        waits_for="a person's approval: step rest: from 25% to 100%, 90 more of 120 nodes are replaced",
        until=NOW + 83_700,
        needs_person=True,
        commands=("dovetail rollout approve default-7f3c9a51d0",),
    ),
    RolloutShown(
        name="gpu-0b1d44e9c2",
        pool="gpu",
        state="Replacing",
        total=4,
        target=1,
        leaving=1,
        steps=(
            StepShown(name="canary", nodes=1, place="done", soak=1800.0),
            StepShown(name="rest", nodes=4, place="now"),
        ),
        gates=(GateShown(name="nodes", result="Unknown", message="no pod is ready yet: StatefulSet ml/train"),),
        since=NOW - 120,
        waits_for="1 node to begin and 1 node to leave",
        commands=("dovetail rollout pause gpu-0b1d44e9c2",),
    ),
)


def a_status() -> Document:
    """A cluster in which a bit of everything happens."""
    answer = StatusAnswer(
        source="cluster prod-eu1",
        now=NOW,
        scheduler="planning",
        totals=Totals(
            nodes=143,
            claims=143,
            pods=2311,
            pending_pods=4,
            price=61.42,
            unpriced=1,
            spot=0.62,
            cpu=Use(used=740.0, room=1000.0),
            memory=Use(used=550 * GIB, room=1000 * GIB),
            not_ours=2,
        ),
        pauses=("PAUSED: expiry for NodePool db until 2026-05-28T20:30:00Z, by alice: a release",),
        under_way=(
            Move(
                kind="held",
                name="ip-10-0-9-2.eu-west-1.compute.internal",
                claim="default-a1",
                pool="default",
                why="Underutilized",
                step="second look",
                since=NOW - 6,
                progress="after 1 replacement",
                due=NOW + 9,
                savings=0.384,
                stop="dovetail cancel default-a1 --reason TEXT",
            ),
            Move(
                kind="disruption",
                name="ip-10-0-8-40.eu-west-1.compute.internal",
                claim="db-b2",
                pool="db",
                why="Drifted",
                step="before its delete",
                since=NOW - 360,
                progress="its replacements start, or its drain runs first",
                stop="dovetail cancel db-b2 --reason TEXT",
            ),
            Move(
                kind="termination",
                name="ip-10-0-3-17.eu-west-1.compute.internal",
                claim="default-c3",
                pool="default",
                why="Drifted",
                step="drain",
                since=NOW - 720,
                progress="5 pods left · PDB payments/api",
                pods_left=5,
                blockers=("PDB payments/api",),
            ),
            Move(
                kind="launch",
                name="default-8f2c3d1e-0",
                claim="default-8f2c3d1e-0",
                pool="default",
                why="new node",
                step="waits to join",
                since=NOW - 31,
                progress="c7g.2xlarge, spot, eu-west-1b",
            ),
        ),
        needs_person=(
            Need(
                about="ip-10-0-3-17.eu-west-1.compute.internal",
                what="drain held for 12m by PDB payments/api",
                since=NOW - 720,
                command="dovetail explain node ip-10-0-3-17.eu-west-1.compute.internal",
                pool="default",
            ),
            Need(
                about="ml/train-7f", what="pending for 9m", since=NOW - 540, command="dovetail explain pod ml/train-7f"
            ),
        ),
        pools=(
            PoolStatus(
                name="default",
                nodes=120,
                price=48.1,
                cpu=Use(used=78.0, room=100.0),
                memory=Use(used=61.0, room=100.0),
                drifted=14,
                may_go=tuple(Allowed(reason=r, left=3, allowed=12) for r in ("Empty", "Drifted", "Underutilized")),
                next_due=NOW + 9,
                next="second look",
            ),
            PoolStatus(
                name="gpu",
                nodes=4,
                price=11.2,
                cpu=Use(used=31.0, room=100.0),
                memory=Use(used=40.0, room=100.0),
                drifted=0,
                may_go=(
                    Allowed(reason="Empty", left=1, allowed=1),
                    Allowed(reason="Drifted", left=0, allowed=0, why_not="budget 0 in the window 0 8 * * *"),
                ),
            ),
        ),
        recent=(Done(at=NOW - 65, text="created 2 NodeClaims"),),
        unreadable=("NodePool odd: spec.limits: 'many' is no quantity",),
        rollouts=ROLLOUTS,
    )
    return {**document("ClusterStatus", "prod-eu1", answer), "workers": 2, "workflows": ""}


def some_nodes() -> Document:
    rows = [
        NodeRow(
            name=f"ip-10-0-3-{i}.eu-west-1.compute.internal",
            claim=f"default-{i}",
            pool="gpu" if i == 3 else "default",
            type="m5.4xlarge",
            zone="eu-west-1a",
            capacity_type="spot" if i % 2 else "on-demand",
            since=NOW - 86400.0 * i,
            price=0.768 / i if i != 4 else None,
            cpu_share=0.2 * i,
            memory_share=0.1 * i,
            pods=3 * i,
            state="terminating" if i == 2 else "ready",
            what="Drifted: drain, 5 pods left · PDB payments/api" if i == 2 else "",
            labels={"team": "web" if i < 3 else "ml"},
        )
        for i in (1, 2, 3, 4)
    ]
    rows += [_not_ours(5, price=0.192, type="m5.xlarge"), _not_ours(6, price=None, type="")]
    pools = ("default", "gpu")
    answer = NodesAnswer(source="cluster prod-eu1", now=NOW, nodes=tuple(rows), pools=pools)
    return document("NodeList", "prod-eu1", answer)


def _not_ours(i: int, **more: Any) -> NodeRow:
    """Of a managed node group, or of Fargate, which has no type."""
    return NodeRow(
        name=f"ip-10-0-3-{i}.eu-west-1.compute.internal",
        claim="",
        pool="",
        zone="eu-west-1a",
        capacity_type="on-demand" if more["type"] else "",
        since=NOW - 86400.0 * i,
        cpu_share=0.4,
        memory_share=0.3,
        pods=8,
        state=NOT_OURS,
        **more,
    )


def status_in(found: Document) -> ClusterStatus:
    return read_document(ClusterStatus, found)


def nodes_in(found: Document) -> NodesAnswer:
    return read_document(NodesAnswer, found)


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("command", ["status", "nodes"])
def test_the_screen_is_as_it_was_looked_at_and_fits(command: str, width: int) -> None:
    screen = Screen(width=width)
    text = (
        status_text(status_in(a_status()), screen)
        if command == "status"
        else nodes_text(nodes_in(some_nodes()), screen)
    )
    file = GOLDEN / f"{command}-{width}.txt"
    if os.environ.get("DOVETAIL_GOLDEN") == "write":
        file.write_text(text + "\n")

    assert text + "\n" == file.read_text()
    assert [line for line in text.splitlines() if len(line) > width] == []


def test_colours_say_the_state_and_a_pipe_has_none() -> None:
    plain, painted = (
        status_text(status_in(a_status()), Screen(width=120, colours=colours)) for colours in (False, True)
    )

    assert "\x1b[" not in plain
    assert "\x1b[31m!\x1b[0m" in painted, "what needs a person is red"
    assert "\x1b[33mip-10-0-3-17" in painted, "a drain that is held waits"
    stripped = painted.replace("\x1b[0m", "")
    for colour in ("31", "32", "33"):
        stripped = stripped.replace(f"\x1b[{colour}m", "")
    assert stripped == plain


def test_a_quiet_cluster_says_that_it_is_quiet() -> None:
    text = status_text(status_in({**a_status(), "underWay": [], "needsPerson": []}), Screen(width=80))

    assert "nothing is under way\n\nnothing needs a person\n" in text


def test_documents_have_a_version_and_times_of_rfc_3339() -> None:
    found = a_status()
    again = json.loads(as_json(found))

    assert (again["apiVersion"], again["kind"], again["cluster"]) == ("dovetail.sh/v1", "ClusterStatus", "prod-eu1")
    assert (again["now"], again["underWay"][0]["due"]) == ("2026-05-28T20:26:40Z", "2026-05-28T20:26:49Z")
    assert again["pools"][0]["mayGo"][0] == {"reason": "Empty", "left": 3, "allowed": 12, "whyNot": ""}
    assert "kind: ClusterStatus" in as_yaml(found)


def test_names_are_what_kubectl_takes_and_markdown_has_every_column() -> None:
    assert status_names(status_in(a_status())).splitlines()[0] == "nodeclaim.karpenter.sh/default-a1"
    assert "| default | 120 | 48.10 |" in status_markdown(status_in(a_status()))


def test_why_a_node_stays_is_in_the_wide_table() -> None:
    found = some_nodes()
    found["nodes"][0]["stays"] = "consolidateAfter has not elapsed"
    answer = nodes_in(found)
    wide, narrow = nodes_text(answer, Screen(width=80), wide=True), nodes_text(answer, Screen(width=200))

    assert "ready        stays: consolidateAfter has not elapsed" in wide and "stays:" not in narrow


@pytest.mark.parametrize("width", [60, 80, 100])
def test_what_cancel_takes_can_be_copied_where_the_command_has_no_room(width: int) -> None:
    found = a_status()
    found["underWay"][0]["claim"] = claim = "general-purpose-on-demand-8f2c3d1e-0"
    found["underWay"][0]["stop"] = f"dovetail cancel {claim} --reason TEXT"

    text = status_text(status_in(found), Screen(width=width))

    assert claim in text.split() and "dovetail cancel NODECLAIM --reason TEXT" in " ".join(text.split())
    assert max(map(len, text.split("NEEDS")[0].splitlines())) <= width


def test_nodes_are_chosen_by_pool_and_labels_and_sorted() -> None:
    def names(pool: str, selector: str, order: str) -> list[str]:
        shown, found = chosen(some_nodes(), pool, selector, order)
        assert nodes_in(shown) == found, "the document is chosen from like the text"
        return [node.claim.rpartition("-")[2] for node in found.nodes if node.claim]

    assert names("", "", "price") == ["1", "2", "3", "4"]
    assert names("", "", "age") == ["4", "3", "2", "1"]
    assert names("gpu", "", "price") == ["3"]
    assert names("", "team=web", "name") == ["1", "2"]
    assert names("", "team!=web,team", "name") == ["3", "4"]
    assert names("", "!team", "name") == []
    with pytest.raises(CommandFailed, match="a term is KEY=VALUE"):
        names("", "team in (web)", "name")


def test_a_table_drops_columns_before_it_cuts_below_what_can_be_read() -> None:
    columns = (Column(head="NAME", cut=True), Column(head="WHY", rank=1, cut=True), Column(head="SIZE", right=True))
    rows = [("a" * 30, "because of everything", "12")]

    assert table(columns, rows, Screen(width=60))[1] == "a" * 30 + "  because of everything    12"
    assert table(columns, rows, Screen(width=32)) == [
        "NAME          WHY           SIZE",
        "aaaaaaaaaaa…  because of …    12",
    ]
    assert table(columns, rows, Screen(width=20)) == ["NAME            SIZE", "aaaaaaaaaaaaa…    12"]
