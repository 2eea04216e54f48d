"""What a stranger can do who may write to Temporal's namespace, asked on a real server: nothing to what stands.

Each step that a worker serves is asked for with inputs that name what stands, each field forged that could point the
step elsewhere or hurry it: by a workflow of the stranger's without the cluster's header, by one that has the header,
and by one that has taken an id of ours that nobody holds. Workflows of ours are begun by the stranger too, with forged
inputs. The records of the API server and the cloud are compared.
A step without an entry here fails the test, so a new step is asked about from its first day.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy
from temporalio.exceptions import ActivityError, ChildWorkflowError
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from dovetail.activities.identity.askers import ASKERS
from dovetail.activities.identity.cluster_header import with_header
from dovetail.adapters.kubernetes_json.parsing.pools import parse_node_pool
from dovetail.connection.owner import client_of
from dovetail.disruption.methods.static_drift import node_from_template
from dovetail.messages.inputs import DisruptInput, NodeInput
from dovetail.messages.interruptions import Answered, Interruption
from dovetail.messages.orders import DeleteClaim, RebootNode, StartOwner, StartRelease, TakeOffMark, TerminateOrphan
from dovetail.messages.plans import DisruptionCommand, Seen, Target
from dovetail.messages.requests import (
    CreateRequest,
    DeleteRequest,
    DeletesRequest,
    DisruptionRequest,
    GiveBackRequest,
    MarkRequest,
    NoticeRequest,
    ProvisioningRequest,
    ReadyRequest,
    UnmarkRequest,
)
from dovetail.messages.states import AwaitedMark
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.messages.workflow_ids import (
    claim_owner_id,
    disruption_id,
    node_owner_id,
    scheduler_id,
    task_queue,
)
from dovetail.messages.workflow_types import DISRUPT_NODES, TERMINATE_NODE
from dovetail.model import names
from dovetail.model.nodes import NodeClassRef
from dovetail.model.pools import ClaimTemplate, NodePool
from dovetail.model.scheduling.taints import Taint
from dovetail.model.values.json import Json
from tests.system.beside import beside
from tests.test_architecture import STEPS
from worlds.stage.stage import Stage

pytestmark = pytest.mark.temporal

SECONDS = 4.0  # a step that waits is given up: it acts on nothing
PATIENCE = 180.0  # what is refused at once has all the time that a crowded machine takes
STRANGER = "stranger"  # whom the guard sends away from every step
WAITS = frozenset(
    {
        "await_provisioning_plan",
        "await_disruption_plan",
        "await_orders",
        "await_marked",
        "await_ready",
        "await_gone",
        "keep_up",
        "watch_interruptions",
    }
)
PLANNING = frozenset({"await_provisioning_plan", "await_disruption_plan", "await_orders", "keep_up"})
WRITTEN_BY_STEPS = frozenset(
    {
        names.LAUNCHED,
        names.REGISTERED_CONDITION,
        names.INITIALIZED_CONDITION,
        names.DRAINED,
        names.VOLUMES_DETACHED,
        names.INSTANCE_TERMINATING,
        names.DISRUPTION_REASON,
    }
)


@workflow.defn(name="Stranger", sandboxed=False)
class Stranger:
    """Asks for steps and says what came of each."""

    @workflow.run
    async def run(self, queues: list[str], asked: list[tuple[str, list[Any]]]) -> list[str]:
        """Each once, all at once."""
        return list(await asyncio.gather(*[self.ask(queues[step in PLANNING], step, given) for step, given in asked]))

    async def ask(self, queue: str, step: str, arguments: list[Any]) -> str:
        seconds = PATIENCE if workflow.info().workflow_id == STRANGER else SECONDS
        try:
            answer = await workflow.execute_activity(
                step,
                args=arguments,
                task_queue=queue,
                start_to_close_timeout=timedelta(seconds=seconds),
                schedule_to_start_timeout=timedelta(seconds=PATIENCE),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        except ActivityError as error:
            return f"{step}: refused: {error.cause}"
        return f"{step}: {answer}"


@workflow.defn(name="StrangerParent", sandboxed=False)
class StrangerParent:
    """Begins workflows of ours, which a worker of ours serves."""

    @workflow.run
    async def run(self, queue: str, kind: str, given: list[tuple[str, Any]]) -> list[str]:
        """Each once, all at once."""
        return list(await asyncio.gather(*[self.begin(queue, kind, *one) for one in given]))

    async def begin(self, queue: str, kind: str, identity: str, given: Any) -> str:
        try:
            return str(await workflow.execute_child_workflow(kind, given, id=identity, task_queue=queue))
        except ChildWorkflowError as error:
            return f"failed: {error.cause}"


class Headers(Interceptor):
    """Gives the stranger's steps and children the cluster's header."""

    def __init__(self, cluster_uid: str) -> None:
        self.cluster_uid = cluster_uid

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        uid = self.cluster_uid

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> Any:
                return super().start_activity(replace(input, headers=with_header(input.headers, uid)))

            async def start_child_workflow(self, input: StartChildWorkflowInput) -> Any:
                return await super().start_child_workflow(replace(input, headers=with_header(input.headers, uid)))

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands, as a stranger may know it."""

    cluster: str
    claim: ClaimRef
    node: str
    node_uid: str
    instance: str
    pods: tuple[str, ...] = ()

    @property
    def target(self) -> Target:
        return Target(
            claim=self.claim.name,
            claim_uid=self.claim.uid,
            node=self.node,
            node_uid=self.node_uid,
            provider_id=self.instance,
            pool=self.claim.pool,
            pods=self.pods,
        )


def departures(at: Standing) -> list[Departure]:
    """Of the claim that stands, and of claims that do not, with what belongs to the one that stands."""
    right = Departure(
        claim=at.claim,
        provider_id=at.instance,
        nodes=(at.node,),
        node_uids=(at.node_uid,),
        deadline=1.0,
        reason="Forceful Termination",
        tainted=1.0,
        is_final=True,
    )
    return [
        right,
        replace(right, provider_id=""),
        replace(right, claim=replace(at.claim, uid="another")),
        replace(right, claim=replace(at.claim, name="another", uid="another")),
        replace(right, claim=ClaimRef(name="", uid="")),
        replace(right, nodes=(), node_uids=()),
        replace(right, instance_gone=True, emptied=True),
    ]


def proposals(at: Standing) -> list[CreateRequest]:
    """Nodes that the pool would not make."""
    ours = node_from_template(POOLS[at.cluster])
    forged = [
        replace(ours, pool_uid="another"),
        replace(ours, annotations=(*ours.annotations, (names.LAUNCH_REQUEST, '{"generation": 0, "request": "{}"}'))),
        replace(ours, annotations=(*ours.annotations, (names.DO_NOT_DISRUPT, "true"))),
        replace(ours, node_class=NodeClassRef(group="dovetail.sh", kind="EmbeddedNodeClass", name="x")),
        replace(ours, labels=(*ours.labels, (names.NODE_POOL, "another"))),
        replace(ours, labels=(*ours.labels, ("node-restriction.kubernetes.io/trusted", "yes"))),
        replace(ours, taints=(Taint(key="nobody", effect="NoSchedule"),)),
        replace(ours, expire_after=1.0),
        replace(ours, requirements=()),
    ]
    lists = (("c-2x-amd64-linux",),)
    wide = ours
    return [
        *[CreateRequest(plan_id="forged", proposed=(one,), type_lists=lists) for one in forged],
        CreateRequest(plan_id="forged", proposed=(wide,), type_lists=(("c-64x-amd64-linux",),)),
    ]


POOLS: dict[str, NodePool] = {}


def forged_inputs(at: Standing) -> Mapping[str, Sequence[object]]:
    """For each step what a stranger would give it. None: the step takes nothing that could be forged."""
    every = departures(at)
    owner = disruption_id(at.cluster, "forged")
    command = DisruptionCommand(reason="Drifted", method="drift", targets=(at.target,))
    ended = Interruption(id="x", reason="no_op", instances=(at.instance.rpartition("/")[2],), at=1.0)
    return {
        "await_provisioning_plan": [ProvisioningRequest(nominated=(at.node,), refused_pods=("x",))],
        "await_disruption_plan": [DisruptionRequest(nominations=((at.node, 1e12),), holds_enough=True)],
        "await_orders": [None],
        "await_marked": [(AwaitedMark(workflow_id=owner, claims=(at.claim,)),)],
        "await_ready": [ReadyRequest(claims=(at.claim,), until=0.0)],
        "await_gone": [(at.claim,)],
        "keep_up": [],
        "watch_interruptions": [],
        "judge_version": [],
        "begin_departure": [at.claim, replace(at.claim, uid="another"), replace(at.claim, name="another")],
        "drain_node": every,
        "await_detached": every,
        "terminate_instance": every,
        "release_claim": every,
        "release_node": every,
        "begin_release": [NodeInput(cluster=at.cluster, node=at.node, uid=uid) for uid in (at.node_uid, "another")],
        "launch_instance": [at.claim, replace(at.claim, uid="another")],
        "await_joined": [at.claim, replace(at.claim, uid="another")],
        "await_initialized": [at.claim, replace(at.claim, uid="another")],
        "start_owner": [
            StartOwner(claim=at.claim, workflow_type=kind) for kind in (TERMINATE_NODE, "DisruptNodes", "Stranger")
        ],
        "start_release": [StartRelease(node=at.node, uid=at.node_uid)],
        "take_off_mark": [TakeOffMark(claim=at.claim, owner=one) for one in ("", owner)],
        "delete_claim_for": [
            DeleteClaim(claim=at.claim, reason=reason, at_once=True, condition="Ready")
            for reason in ("expired", "garbage_collected", "unhealthy", "static_scale_down", "node_deleted", "because")
        ],
        "reboot_node": [RebootNode(claim=at.claim, node=at.node), RebootNode(claim=at.claim, node=at.node, turn=1)],
        "terminate_orphan": [TerminateOrphan(provider_id=at.instance, claim_uid=uid) for uid in ("", "another")],
        "create_node_claims": proposals(at),
        "mark_nodes": [
            MarkRequest(owner=one, command=command, seen=Seen(taken_at=1e12))
            for one in ("mine", disruption_id(at.cluster, "another"))
        ],
        "unmark_nodes": [UnmarkRequest(owner=one, claims=(at.claim,), rest="failed") for one in ("", owner)],
        "delete_claim": [
            DeleteRequest(name=at.claim.name, uid=at.claim.uid),
            DeleteRequest(name=at.claim.name, uid=at.claim.uid, target=at.target, reason="Empty"),
            DeleteRequest(
                name=at.claim.name, uid=at.claim.uid, target=replace(at.target, grace=0.0), reason="Unhealthy"
            ),
        ],
        "delete_claims": [
            DeletesRequest(targets=(replace(at.target, grace=0.0),), reason=reason) for reason in ("Empty", "Unhealthy")
        ],
        "give_back": [GiveBackRequest(plan_id=one, names=(at.claim.name,)) for one in ("", "forged")],
        "publish": [NoticeRequest(nodes=(at.node,), reason="Forged", message="a stranger's words")],
        "answer_interruptions": [(ended,)],
        "tell_interruptions": [(Answered(interruption=ended),)],
    }


def forged_disruptions(at: Standing) -> list[DisruptInput]:
    """Of a node that no budget lets go."""
    seen = Seen(taken_at=time.time()).ready(time.time())
    commands = [
        DisruptionCommand(reason=reason, method=method, targets=(at.target,))
        for reason, method in (("Drifted", "drift"), ("Empty", "emptiness"), ("Requested", "requested"))
    ]
    return [DisruptInput(cluster=at.cluster, plan_id=c.reason, command=c, seen=seen) for c in commands]


def test_every_step_is_asked_for_by_a_stranger_and_says_who_may_ask() -> None:
    at = Standing(cluster="c", claim=ClaimRef(name="n", uid="u", pool="p"), node="n", node_uid="u", instance="i")
    POOLS["c"] = NodePool(name="p", template=ClaimTemplate(node_class=NodeClassRef(group="g", kind="K", name="n")))
    served = {step.partition(".")[2] for step in STEPS}

    assert served == set(forged_inputs(at)) == set(ASKERS)


def records(stage: Stage) -> Json:
    """What the API server and the cloud have of what stands, without the versions and what upkeep counts."""
    kept: Json = {}
    for kind in ("NodeClaim", "Node", "Pod"):
        for body in stage.world.objects(kind):
            metadata = body["metadata"]
            kept[f"{kind}/{metadata['name']}"] = {
                "metadata": {k: metadata.get(k) for k in ("uid", "deletionTimestamp", "finalizers", "annotations")},
                "taints": body["spec"].get("taints") or [],
                "node": body["spec"].get("nodeName"),
                "conditions": sorted(
                    (each["type"], each["status"])
                    for each in body.get("status", {}).get("conditions") or []
                    if each["type"] in WRITTEN_BY_STEPS
                ),
            }
    kept["instances"] = sorted(one.id for one in stage.world.live_instances())
    return kept


@beside
async def test_no_stranger_s_step_touches_what_stands(stage: Stage) -> None:
    stage.start_worker()
    stage.apply_pool(budgets=[{"nodes": "0"}])
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    (claim,), system, pool = (
        stage.claims(),
        stage.world.get("Namespace", "kube-system"),
        stage.world.get("NodePool", "pool"),
    )
    assert system is not None and pool is not None
    uid, at = str(system["metadata"]["uid"]), standing(stage, claim)
    POOLS[stage.cluster] = parse_node_pool(pool)
    inputs, client = forged_inputs(at), await stage.client()
    await client.get_workflow_handle(claim_owner_id(stage.cluster, at.claim.name)).result()
    before = records(stage)

    askers = [
        (STRANGER, ""),
        (f"{STRANGER}/with-the-header", uid),
        (disruption_id(stage.cluster, "forged"), uid),
        (claim_owner_id(stage.cluster, at.claim.name), uid),
        (node_owner_id(stage.cluster, at.node), uid),
    ]
    queues = [task_queue(stage.cluster, name) for name in ("control", "plan")]

    async def ask(identity: str, header: str) -> list[str]:
        answers: list[str] = await client.execute_workflow(
            "Stranger",
            args=[queues, asked_of(inputs, identity)],
            id=identity,
            task_queue=f"strangers {header}",
            execution_timeout=timedelta(seconds=600),
            result_type=list[str],
        )
        return answers

    async with (
        Worker(client, task_queue="strangers ", workflows=[Stranger]),
        Worker(
            client,
            task_queue=f"strangers {uid}",
            workflows=[Stranger, StrangerParent],
            interceptors=[Headers(uid)],
        ),
    ):
        said = await asyncio.gather(*[ask(*one) for one in askers])
        begun = await begun_by_strangers(client_of(client, uid), at, f"strangers {uid}")

    assert records(stage) == before, (said, begun)
    assert all("refused: OtherCluster" in one or "not registered" in one for one in said[0]), said[0]
    assert len(begun) == 6 and all("'refused'" in one and "was begun by" in one for one in begun), begun


@beside
async def test_no_stranger_s_step_hurries_what_a_person_has_deleted(stage: Stage) -> None:
    """A PDB holds its pod and a hook its instance, whoever asks, also where the id of its termination was taken."""
    stage.start_worker()
    stage.apply_pool(budgets=[{"nodes": "0"}])
    stage.world.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
        }
    )
    stage.deploy(1)
    await stage.until(lambda: stage.running_pods() == 1 and stage.initialised(1), 90, "the pod runs")
    (claim,), pool, system = (
        stage.claims(),
        stage.world.get("NodePool", "pool"),
        stage.world.get("Namespace", "kube-system"),
    )
    assert pool is not None and system is not None
    uid, at, client = str(system["metadata"]["uid"]), standing(stage, claim), await stage.client()
    POOLS[stage.cluster], name = parse_node_pool(pool), at.claim.name
    hook = {"metadata": {"annotations": {f"{names.PRE_TERMINATE_HOOK}backup": "backup-team"}}}
    stage.world.patch("NodeClaim", name, hook)
    stage.world.delete("NodeClaim", name)
    await stage.until(
        lambda: (stage.world.get("NodeClaim", name) or {})["metadata"].get("deletionTimestamp"), 30, "it leaves"
    )
    before = held(stage, name)

    async with Worker(client, task_queue="strangers", workflows=[Stranger], interceptors=[Headers(uid)]):
        queues = [task_queue(stage.cluster, queue) for queue in ("control", "plan")]
        said = [
            await client.execute_workflow(
                "Stranger",
                args=[queues, asked_of(forged_inputs(at), identity)],
                id=identity,
                id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
                task_queue="strangers",
                execution_timeout=timedelta(seconds=PATIENCE),
                result_type=list[str],
            )
            for identity in (disruption_id(stage.cluster, "forged"), claim_owner_id(stage.cluster, name))
        ]

    assert held(stage, name) == before, said
    assert any("pods are still to leave its node" in one for one in said[1]), said[1]


def held(stage: Stage, name: str) -> Json:
    """What holds the node, and by when, as the API server and the cloud have it."""
    claim = stage.world.get("NodeClaim", name)
    metadata = claim["metadata"] if claim is not None else {}
    return {
        "deadline": metadata.get("annotations", {}).get(names.TERMINATION_DEADLINE),
        "finalizers": metadata.get("finalizers"),
        "pods": [(p["metadata"]["uid"], p["metadata"].get("deletionTimestamp")) for p in stage.world.objects("Pod")],
        "instances": sorted(one.id for one in stage.world.live_instances()),
    }


@beside
async def test_who_takes_the_scheduler_s_id_disrupts_no_more_nodes_than_the_budgets_let_go(stage: Stage) -> None:
    """DIS-141."""
    stage.start_worker()
    stage.apply_pool(budgets=[{"nodes": "1"}])
    stage.deploy(3)
    await stage.until(lambda: stage.running_pods() == 3 and stage.initialised(3), 90, "the pods run")
    system, client, ours = (
        stage.world.get("Namespace", "kube-system"),
        await stage.client(),
        task_queue(stage.cluster, "control"),
    )
    assert system is not None
    uid = str(system["metadata"]["uid"])
    disruptions = [
        (disruption_id(stage.cluster, at.node), replace(forged_disruptions(at)[0], plan_id=at.node))
        for at in (standing(stage, claim) for claim in stage.claims())
    ]

    async with Worker(client, task_queue="strangers", workflows=[StrangerParent], interceptors=[Headers(uid)]):
        ends: list[str] = await client_of(client, uid).execute_workflow(
            "StrangerParent",
            args=[ours, DISRUPT_NODES, disruptions],
            id=scheduler_id(stage.cluster),
            id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
            task_queue="strangers",
            execution_timeout=timedelta(seconds=PATIENCE),
            result_type=list[str],
        )

    refused = [end for end in ends if "lets 1 of 3 nodes go at once for Drifted" in end]
    assert len(refused) == 2 and sum("'done'" in end for end in ends) == 1, ends


async def begun_by_strangers(client: Client, at: Standing, queue: str) -> list[str]:
    """How a DisruptNodes ends, outside every budget, that a stranger begins by hand, and by a workflow."""
    ours = task_queue(at.cluster, "control")
    disruptions = [(disruption_id(at.cluster, one.plan_id), one) for one in forged_disruptions(at)]
    limit = timedelta(seconds=PATIENCE)

    async def begin(identity: str, given: DisruptInput) -> str:
        return str(
            await client.execute_workflow(DISRUPT_NODES, given, id=identity, task_queue=ours, execution_timeout=limit)
        )

    by_hand = await asyncio.gather(*[begin(*one) for one in disruptions])
    by_workflow: list[str] = await client.execute_workflow(
        "StrangerParent",
        args=[ours, DISRUPT_NODES, disruptions],
        id="stranger/parent",
        task_queue=queue,
        execution_timeout=limit,
        result_type=list[str],
    )
    return [*by_hand, *by_workflow]


def asked_of(inputs: Mapping[str, Sequence[object]], identity: str) -> list[tuple[str, list[object]]]:
    """All of them once for those whom the guard sends away; else what acts, since a wait only costs time."""
    return [
        (step, [given])
        for step, forged in inputs.items()
        for given in forged
        if identity.startswith(STRANGER) or step not in WAITS
    ]


def standing(stage: Stage, claim: Json) -> Standing:
    metadata, status = claim["metadata"], claim["status"]
    node = stage.world.get("Node", status["nodeName"])
    assert node is not None
    return Standing(
        cluster=stage.cluster,
        claim=ClaimRef(name=metadata["name"], uid=metadata["uid"], pool="pool"),
        node=status["nodeName"],
        node_uid=node["metadata"]["uid"],
        instance=status["providerID"],
        pods=tuple(pod["metadata"]["uid"] for pod in stage.world.objects("Pod")),
    )
