"""`dovetail savings` for any time: nodes that began to leave before it or after it are on its bill."""

import time
from typing import Any, Final

import pytest
from temporalio.client import Client

from dovetail.answers.questions.asking import Asked
from dovetail.answers.questions.record import log, savings
from dovetail.answers.record.entries import moment_text
from dovetail.messages.inputs import ClaimInput
from dovetail.messages.outcomes import DrainOutcome, TerminationOutcome
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import claim_owner_id, task_queue
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import read_settings
from dovetail.workflows.launch_node import LaunchNode
from dovetail.workflows.terminate_node import TerminateNode
from tests.waiting import until, until_answered
from tests.workflows.conftest import serving_on
from tests.workflows.fake_steps import not_yet
from tests.workflows.test_claim_owner import STEPS, willing
from worlds.disruption import a_type

pytestmark = pytest.mark.temporal

HOUR: Final = 3600.0
CLAIM: Final = ClaimRef(name="web-1", uid="u1", pool="web")
FLEET: Final = Snapshot(now=0.0, catalogues={"web": Catalogue(types=(a_type("dear", 4, HOUR),))})  # $1 a second


def left(launched: float) -> Departure:
    return Departure(
        claim=CLAIM,
        provider_id="test://1",
        nodes=("n",),
        node_uids=("n",),
        launched=launched,
        instance_type="dear",
        zone="z1",
        capacity_type="on-demand",
    )


class Source:
    """Whoever answers, with a Temporal server and the prices."""

    most_entries = 100

    def __init__(self, client: Client, cluster: str) -> None:
        self.settings, self.client = read_settings({"CLUSTER_NAME": cluster}), client

    async def temporal(self) -> Client:
        return self.client

    async def priced(self) -> Snapshot:
        return FLEET


async def test_a_node_is_on_the_bill_of_the_time_before_it_began_to_leave_and_of_the_time_until_its_end(
    full_server: Client,
) -> None:
    began, free = time.time(), list[bool]()

    def drain(_: Departure) -> DrainOutcome:
        if not free:
            raise not_yet(0.1)
        return DrainOutcome(detached=True)

    ended = TerminationOutcome(released=True)
    steps = willing(begin_departure=left(began - 8 * HOUR), drain_node=drain, terminate_instance=ended)
    async with serving_on(full_server)([LaunchNode, TerminateNode], steps.of(*STEPS)) as cluster:
        source: Any = Source(full_server, cluster)
        leaving = await full_server.start_workflow(
            TerminateNode.run,
            ClaimInput(cluster=cluster, claim=CLAIM),
            id=claim_owner_id(cluster, CLAIM.name),
            task_queue=task_queue(cluster, "control"),
        )
        await until(lambda: "drain_node" in steps.names() or None, words="it drains")
        early, late = (began - 6 * HOUR, began - 4 * HOUR), (time.time(), began + HOUR)
        await until_it_says(full_server, cluster, "Running")
        draining = [await bill(source, *early), await bill(source, *late)]
        free.append(True)
        await leaving.result()
        gone = time.time()
        await until_it_says(full_server, cluster, "Completed")

        assert [await bill(source, *early), draining[0]] == [pytest.approx(2 * HOUR), pytest.approx(2 * HOUR)]
        assert draining[1] > 0 and 0 < await bill(source, *late) <= gone - late[0]
        listed: Any = (await log(source, asked(*late))).answer
        assert listed.entries == (), "it began before"


def asked(since: float, to: float) -> Asked:
    return Asked(words=(("since", moment_text(since)), ("until", moment_text(to))))


async def bill(source: Any, since: float, to: float) -> float:
    answer: Any = (await savings(source, asked(since, to))).answer
    assert not answer.notes
    return float(answer.total.bill)


async def until_it_says(client: Client, cluster: str, status: str) -> None:
    """The visibility list may lag behind."""
    query = f"WorkflowId = '{claim_owner_id(cluster, CLAIM.name)}' AND ExecutionStatus = '{status}'"

    async def listed() -> bool:
        return bool([each async for each in client.list_workflows(query)])

    await until_answered(listed, words=f"it is listed as {status}")
