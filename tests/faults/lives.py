"""A whole life of a few nodes, with faults on order; what came of it is measured on the ledger and the objects.

A life has three parts: pods get nodes; the NodeClaims under them are deleted by hand; the workload goes and the
empty nodes are disrupted. A worker that is killed is started again at once. Nothing is asserted on our own logs.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio.service import RPCError, RPCStatusCode

from dovetail.model import names
from tests.system.histories import next_task_after, replay_all
from worlds.fault_orders import Kill, Struck
from worlds.stage.stage import Stage, has_condition

STOP_SECONDS = 3.0  # how long a pod takes to end: a drain can be struck in its middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How it is to be lived."""

    kills: tuple[Kill, ...] = ()
    mode: str = ""  # every step twice, or every step failing once before and once after its effect
    nodes: int = 3
    by_hand: bool = True  # whether the middle part is played: NodeClaims deleted by hand


@dataclass
class Lived:
    """What came of it."""

    cluster: str
    launched: dict[str, int]
    struck: dict[str, Struck]
    gaps: dict[str, float]  # from each kill to the product's next step on the world
    left: dict[str, int]
    unstruck: list[str]
    replayed: int = 0
    endings: dict[str, str] = field(default_factory=dict)  # workflow id -> type and status


class Restarter:
    """Starts a killed worker again; takes the database away where the kill asked for it."""

    def __init__(self, stage: Stage, mode: str) -> None:
        self.stage = stage
        self.mode = mode
        self._start()
        self.seen: set[str] = set()

    def _start(self) -> None:
        more = {"DOVETAIL_TEST_FAULTS_MODE": self.mode} if self.mode else {}
        self.stage.start_worker(faulty=True, **more)

    async def run(self) -> None:
        while True:
            worker = self.stage.workers[-1]
            if worker.poll() is not None:
                struck = [k for k in self.stage.orders.kills() if self.stage.orders.struck(k) is not None]
                new = [k for k in struck if k.name not in self.seen]
                if not new:
                    raise AssertionError(f"the worker ended with {worker.returncode} by itself; {self.stage.folder}")
                self.seen.update(k.name for k in new)
                if any(k.lose_database for k in new):
                    await self.stage.lose_database()
                self._start()
            await asyncio.sleep(0.05)


async def live(stage: Stage, life: Life) -> Lived:
    """Live it to the end."""
    stage.orders.give(*life.kills)
    stage.world.set(pod_stop=STOP_SECONDS)
    restarter = asyncio.create_task(Restarter(stage, life.mode).run())
    story = asyncio.create_task(_story(stage, life))
    try:
        await asyncio.wait([restarter, story], return_when=asyncio.FIRST_COMPLETED)
        if not story.done():
            story.cancel()
            restarter.result()
        story.result()
        return await _account(stage, life)
    finally:
        restarter.cancel()
        story.cancel()


async def _story(stage: Stage, life: Life) -> None:
    patience = 60.0 + 45.0 * len(life.kills)
    stage.apply_pool()
    stage.deploy(life.nodes)
    await stage.until(lambda: _all_well(stage, life.nodes), patience, f"{life.nodes} pods run on nodes that are ready")
    if life.by_hand:
        old = {c["metadata"]["uid"] for c in stage.claims()}
        for claim in stage.claims():
            stage.world.delete("NodeClaim", claim["metadata"]["name"])
        await stage.until(
            lambda: _renewed(stage, old, life.nodes), patience, "deleted NodeClaims go, pods run elsewhere"
        )
    stage.world.scale("web", 0)
    await stage.until(stage.nothing_left, patience + 30, "no NodeClaim, Node or instance is left")


def _all_well(stage: Stage, count: int) -> bool:
    claims = stage.claims()
    ready = all(has_condition(c, names.INITIALIZED_CONDITION) for c in claims)
    return stage.running_pods() == count and bool(claims) and ready and not stage.tainted()


def _renewed(stage: Stage, old: set[str], count: int) -> bool:
    return not any(c["metadata"]["uid"] in old for c in stage.claims()) and _all_well(stage, count)


async def _account(stage: Stage, life: Life) -> Lived:
    client = await stage.client()
    await _quiet(stage)  # a kill may strike a workflow that has nothing left to do but to end
    struck = {k.name: found for k in life.kills if (found := stage.orders.struck(k)) is not None}
    return Lived(
        cluster=stage.cluster,
        launched=stage.instances_by_claim(),
        struck=struck,
        gaps={name: await next_step(stage, one) for name, one in struck.items()},
        left={"claims": len(stage.claims()), "nodes": len(stage.managed_nodes()), "tainted": len(stage.tainted())},
        unstruck=[k.name for k in life.kills if k.name not in struck],
        replayed=await replay_all(client, stage.cluster),
        endings=await endings(stage, list(struck.values())),
    )


async def _quiet(stage: Stage) -> None:
    """Until no workflow of a node runs any more."""
    client = await stage.client()

    async def running() -> Sequence[str]:
        query = f'WorkflowId STARTS_WITH "{stage.cluster}/" AND ExecutionStatus = "Running"'
        return [w.id async for w in client.list_workflows(query) if "/claim/" in w.id or "/disrupt/" in w.id]

    for _ in range(150):
        if not await running():
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"workflows do not end: {await running()}")


async def next_step(stage: Stage, struck: Struck) -> float:
    """Seconds from the kill to the next step of the slowest of those that it struck.

    Read from the ledger: the product's first call that names the claim, its node or its instance. Where the step had
    nothing left to write, Temporal's history says when the workflow got on.
    """
    return max([await _next_step_of(stage, struck, subject) for subject in sorted(set(struck.subjects))])


async def _next_step_of(stage: Stage, struck: Struck, subject: str) -> float:
    names = _named_by(stage, subject)
    calls = [e.at for e in stage.writes_of_ours(struck.at) if {e.key, e.uid} & names]
    if calls:
        return min(calls) - struck.at
    try:
        history = await (await stage.workflow(subject)).fetch_history()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return float("inf")  # lost with the database, and nothing was left for it to do
        raise
    moment = next_task_after(history, struck.at)
    return float("inf") if moment is None else moment - struck.at


def _named_by(stage: Stage, subject: str) -> set[str]:
    """Names and ids under which the ledger knows what a workflow works on; those of all claims for a plan's."""
    claim = subject.rpartition("/")[2]
    found = [i for i in stage.world.instances() if "/claim/" not in subject or i.claim_name == claim]
    known = {name for i in found for name in (i.claim_name, i.claim_uid, i.provider_id, i.node)}
    return ({claim} | known) - {""}


async def endings(stage: Stage, struck: list[Struck]) -> dict[str, str]:
    """How the workflows that were struck ended: same id, and in how many runs."""
    client = await stage.client()
    found: dict[str, str] = {}
    for subject in sorted({s for one in struck for s in one.subjects}):
        if "/claim/" in subject or "/disrupt/" in subject:
            try:
                described = await client.get_workflow_handle(subject).describe()
            except RPCError as error:
                assert error.status == RPCStatusCode.NOT_FOUND
                found[subject] = "lost with the database"
                continue
            status = described.status.name.lower() if described.status is not None else "unknown"
            found[subject] = f"{described.workflow_type} {status}"
    return found
