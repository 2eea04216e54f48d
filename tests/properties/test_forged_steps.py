"""Whatever step a stranger asks for, with whatever input, in whatever cluster: what nobody has deleted stays as it is.

The stranger may write to Temporal's namespace, has the cluster's header, and takes the id of any workflow of ours that
does not run: those that run have theirs. `tests/system/test_forged_steps.py` asks the same on a real server for one
cluster, and as well whom the guard sends away at once. Of warnings see docs/guides/security.md.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from dovetail.activities.identity.askers import may_ask
from dovetail.activities.identity.cluster_guard import ClusterGuard
from dovetail.activities.identity.cluster_header import with_header
from dovetail.adapters.simulator.world import SimulatedWorld
from dovetail.settings.settings import Settings
from dovetail.telemetry.metrics.karpenters.pod_times import PodTimes
from dovetail.wiring.world import open_world
from dovetail.worker.steps import Step, Wiring
from tests.properties.forging import CLUSTER, POOLS, STATES, Cluster, fill, forged, given_of
from worlds.fakes import on_duty

pytestmark = pytest.mark.slow

QUIET: Final = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
# Asked for only by ids that are always held, or acting on nothing: the guard's own tests have these.
OUT_OF_REACH: Final = frozenset(
    {
        *("await_marked", "start_owner", "start_release", "take_off_mark", "delete_claim_for", "terminate_orphan"),
        *("await_gone", "await_ready", "judge_version", "mark_nodes", "publish", "reboot_node"),
    }
)
GIVEN_UP: Final = 0.3  # seconds: a step that waits is given up, as a timeout of Temporal's does
CLAIMS: Final = st.lists(
    st.tuples(st.sampled_from(STATES), st.sampled_from(POOLS), st.integers(1, 2)), min_size=1, max_size=4
)


class Served(ActivityInboundInterceptor):
    """The end of the chain: the step itself."""

    def __init__(self) -> None:
        self.taken = False

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self.taken = True
        return await input.fn(*input.args)


class Handle:
    """Of a workflow that the stranger has begun by hand."""

    async def describe(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(parent_id=None)


class Temporal:
    """Starts nothing."""

    def get_workflow_handle(self, *_: object, **__: object) -> Handle:
        return Handle()

    async def start_workflow(self, *_: object, **__: object) -> None:
        return None


@asynccontextmanager
async def served(claims: list[tuple[str, str, int]]) -> AsyncIterator[tuple[Cluster, Mapping[str, Step], str]]:
    """A cluster of these claims, the steps that its worker serves, and its UID."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.db"
        cluster = fill(SimulatedWorld.create(file), claims)
        chosen = Settings.model_validate({"CLUSTER_NAME": CLUSTER, "DOVETAIL_WORLD": str(file)})
        world = await open_world(chosen)
        try:
            queues = Wiring(settings=chosen, world=world, times=PodTimes(duties=on_duty())).activities(("control",))
            yield cluster, {step.__name__: step for step in queues["control"]}, world.cluster_uid
        finally:
            await world.close()
            cluster.world.close()


async def asked(step: Step, cluster_uid: str, asker: str, inputs: tuple[object, ...]) -> str:
    """What comes of it: taken, refused by the guard, or what was raised."""
    end = Served()
    place = ActivityEnvironment(client=cast(Client, Temporal()))
    place.info = replace(place.info, activity_type=step.__name__, workflow_id=asker, workflow_run_id="r")
    guarded = ClusterGuard(CLUSTER, cluster_uid).intercept_activity(end)
    order = ExecuteActivityInput(fn=step, args=inputs, executor=None, headers=with_header({}, cluster_uid))
    try:
        await asyncio.wait_for(place.run(guarded.execute_activity, order), GIVEN_UP)
    except Exception as error:
        return f"{'taken' if end.taken else 'sent away'}: {type(error).__name__}"
    return "taken: done"


async def judge(data: st.DataObject, claims: list[tuple[str, str, int]]) -> str:
    """One step, asked for once; whoever asks is one whom the guard lets pass, where there is one."""
    async with served(claims) as (cluster, steps, cluster_uid):
        step = steps[data.draw(st.sampled_from(sorted(steps.keys() - OUT_OF_REACH)), label="step")]
        right = data.draw(st.sampled_from(cluster.rights), label="of whom")
        kind = given_of(step)
        inputs = () if kind is None else (data.draw(forged(kind, cluster.texts, right), label="input"),)
        passing = [one for one in cluster.ids if may_ask(CLUSTER, step.__name__, next(iter(inputs), None), one)]
        asker = data.draw(st.sampled_from(passing or cluster.ids), label="asker")
        before = cluster.standing()

        outcome = await asked(step, cluster_uid, asker, inputs)

        after = cluster.standing()
        assert {key: after.get(key) for key in before} == before, outcome
        return f"{step.__name__} {outcome}"


@QUIET
@given(st.data(), CLAIMS)
def test_what_nobody_has_deleted_stays_whatever_step_is_forged(
    data: st.DataObject, claims: list[tuple[str, str, int]]
) -> None:
    """DUR-32."""
    asyncio.run(judge(data, claims))


@pytest.mark.soak
@settings(QUIET, max_examples=10_000)
@given(st.data(), CLAIMS)
def test_the_same_holds_for_ten_thousand_clusters(data: st.DataObject, claims: list[tuple[str, str, int]]) -> None:
    asyncio.run(judge(data, claims))
