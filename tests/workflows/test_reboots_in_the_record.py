"""GCR-19: a node whose instance was rebooted is in the record by its name and NodePool, and as no departure."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from temporalio.client import Client

from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.questions.asking import Asked
from dovetail.answers.questions.record import log, savings
from dovetail.answers.record.entries import Entry
from dovetail.answers.record.kept import Archive, kept_about
from dovetail.answers.record.lives import joined
from dovetail.answers.record.log import log_text
from dovetail.answers.record.paces import read_paces
from dovetail.messages.outcomes import MarkOutcome
from dovetail.messages.requests import MarkRequest
from dovetail.workflows.disrupt_nodes import DisruptNodes
from dovetail.workflows.launch_node import LaunchNode
from tests.waiting import until_answered
from tests.workflows.conftest import serving_on
from tests.workflows.test_bill_of_a_period import HOUR, Source
from tests.workflows.test_disrupt_nodes import STEPS, a_command, start_on, willing

pytestmark = pytest.mark.temporal

OF_THE_POOL: Final = Asked(words=(("pool", "pool"),))


def refuse_all(request: MarkRequest) -> MarkOutcome:
    return MarkOutcome(refused=tuple((target.claim, "paused") for target in request.command.targets))


@pytest.mark.parametrize("refused", [False, True])
async def test_a_reboot_is_listed_with_its_node_and_moves_nothing(
    full_server: Client, tmp_path: Path, refused: bool
) -> None:
    steps = willing(**({"mark_nodes": refuse_all} if refused else {}))
    command = replace(a_command(), reason="Unhealthy", method="repair", reboots=True, price=12.0)
    command = replace(command, targets=(replace(command.targets[0], pods=("a", "b")),))
    async with serving_on(full_server)([DisruptNodes, LaunchNode], steps.of(*STEPS)) as cluster:
        source: Any = Source(full_server, cluster)
        handle = await start_on(full_server, cluster, command)
        await handle.result()

        async def listed() -> bool:
            """The visibility list may lag behind."""
            found: Any = (await log(source, Asked())).answer
            return any(entry.ended for entry in found.entries)

        await until_answered(listed, words="it is listed as ended")
        answer: Any = (await log(source, OF_THE_POOL)).answer
        saved: Any = (await savings(source, Asked())).answer
        paces = await read_paces(full_server, cluster)

    (entry,) = answer.entries
    archive = Archive(FolderObjects(tmp_path), cluster)
    await archive.put(0, [entry])
    assert await kept_about(archive, "node-1", HOUR) == (entry,)
    assert (entry.pool, entry.nodes, entry.claims) == ("pool", ("node-1",), ("claim-1",))
    assert (entry.outcome, entry.pods, entry.price_before) == ("refused" if refused else "rebooted", 0, None)
    assert answer.notes == () and "node-1" in log_text(answer, wide=True)
    assert not paces.departures and not paces.moves
    assert [(each.pool, each.moves, each.predicted, each.pods) for each in saved.pools] == [("pool", 0, 0.0, 0)]
    assert saved.total.undone == int(refused)
    assert not saved.namespaces


def test_a_node_that_is_deleted_later_is_no_part_of_its_reboot() -> None:
    rebooted = Entry(
        kind="disruption", workflow="r", run="1", began=1.0, ended=3.0, outcome="rebooted", claims=("claim-1",)
    )
    gone = replace(rebooted, kind="termination", workflow="t", began=9.0, outcome="terminated")

    assert [entry.disruption for entry in joined([rebooted, gone])] == ["", ""]
    assert [entry.disruption for entry in joined([replace(rebooted, outcome="done"), gone])] == ["", "r"]
