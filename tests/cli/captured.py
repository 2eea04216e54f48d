"""A cluster that stands still, and all that answers a command about it: what docs/reference/screens.md shows.

The cluster is a simulated world whose clocks stand. What only Temporal, the record, a shadow or a cloud knows is made
up; it is put where the worker's API and the commands ask for it, so that every text is made as it is for an operator.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast, get_args

import pytest
import yaml

import dovetail.cli.orders.target  # noqa: F401  its `connect` is bound before another one stands in for it
from dovetail.activities.shared.looks.flights import DecisionKind
from dovetail.adapters.folder.kept_objects import FolderObjects
from dovetail.answers.doctor import doctor as judging
from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.doctor.findings import Check, failed, fine, skipped, warned
from dovetail.answers.doctor.preflight import rights_check
from dovetail.answers.look import sources
from dovetail.answers.look.recording import Decision, Recording, packed
from dovetail.answers.look.sources import Look, look_now
from dovetail.answers.questions import checks, record
from dovetail.answers.questions.versions import VersionsAnswer
from dovetail.answers.record.entries import Entries, Entry, Period
from dovetail.answers.record.history import HistoryAnswer, Story
from dovetail.answers.record.paces import paces_of
from dovetail.answers.record.story import Line, Pending
from dovetail.answers.serving import worker_source
from dovetail.answers.serving.api import Api
from dovetail.answers.serving.worker_source import WorkerSource
from dovetail.answers.shadow.comparing import Comparing, GoneClaim, LaunchedNode, ShadowReport, compared_launch
from dovetail.answers.shadow.shadow import Shadow
from dovetail.cli.orders import take_over as taking_over
from dovetail.connection import temporal as connecting
from dovetail.connection.configuration import TemporalAway
from dovetail.connection.presence import TemporalPresence
from dovetail.disruption.choose import choose
from dovetail.disruption.outlook.paces import Paces
from dovetail.disruption.rounds import never
from dovetail.messages.plans import DisruptionCommand, Share, Target
from dovetail.model import names
from dovetail.model.objects.watched_kinds import PLACEMENT, Kinds
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.ports.cloud import Rehearsed
from dovetail.settings.deciding import deciding, disruption_settings, placement_settings
from dovetail.settings.settings import Settings
from dovetail.wiring.simulated import SimulatedAdapter
from dovetail.wiring.world import open_world
from testbed.simulated_world import SimulatedWorld
from tests.adapters.simulator.manifests import a_node_class, a_pdb
from tests.cli.fleet import Reply, Served, serving_by
from tests.cli.test_explain_node import a_bound_pod, a_managed_node
from tests.cli.test_planned_changes import hashed
from tests.cli.test_status_text import NOW
from tests.cli.worlds import a_ready_pool
from worlds.manifests import pod_manifest

CLUSTER: Final = "prod-eu1"
UID: Final = "7d0f3c52-9b7e-4f6e-8a57-0d1b4f3a9c11"
GONE_UID: Final = "1b2e9a40-77c1-4a0e-bd1e-6f9d2c8e5a03"
HOUR: Final = 3600.0
DAY: Final = 86400.0
EMPTY, BUSY, HELD, GUARDED = (f"ip-10-0-3-{number}.eu-west-1.compute.internal" for number in (17, 24, 40, 58))
NIGHT: Final = {"nodes": "0", "schedule": "0 8 * * *", "duration": "12h", "reasons": ["Drifted"]}
RECORDED: Final = 48_213  # bytes of what is written


def _pool(name: str, *budgets: Json) -> Json:
    disruption = {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": list(budgets)}
    pool = hashed(a_ready_pool(name, disruption=disruption))
    pool["metadata"]["creationTimestamp"] = format_time(NOW - 90 * DAY)
    return pool


def _objects() -> Iterator[Json]:
    """Nodes that go, that stay and that are held; pods that wait and that find no place."""
    pools = {"default": _pool("default", NIGHT, {"nodes": "2"}), "batch": _pool("batch", {"nodes": "1"})}
    yield from pools.values()
    places = ((EMPTY, "default", 3), (BUSY, "default", 12), (HELD, "default", 20), (GUARDED, "batch", 26))
    for node, pool, days in places:
        claim, body = a_managed_node(node, pool)
        name, since = f"{pool}-{node.split('.')[0][-2:]}c4", format_time(NOW - days * DAY)
        claim["metadata"] |= {"name": name, "annotations": dict(pools[pool]["metadata"]["annotations"])}
        claim["spec"]["expireAfter"] = "720h"
        for condition in claim["status"]["conditions"]:
            condition["lastTransitionTime"] = since
        for each in (claim, body):
            each["metadata"]["creationTimestamp"] = since
        yield from (claim, body)
    yield a_pdb("api", minAvailable=1)
    yield from (a_bound_pod("cart-7d9f-x2x4k", BUSY, "cart"), a_bound_pod("api-0", HELD, "api"))
    training = a_bound_pod("train-7f", GUARDED, "train")
    training["metadata"]["annotations"] = {names.DO_NOT_DISRUPT: "true"}
    yield training
    for number in range(3):
        yield pod_manifest(f"search-{number}", {"app": "search"}, cpu="6")
    yield pod_manifest("zonal", nodeSelector={names.ZONE: "eu-west-1d"})


def changed_pool() -> str:
    """The file of `plan -f`: another label, so that its nodes drift, and a budget of one."""
    pool = _pool("default", {"nodes": "1"})
    del pool["status"], pool["metadata"]["annotations"], pool["metadata"]["creationTimestamp"]
    pool["spec"]["template"]["metadata"] = {"labels": {"tier": "web"}}
    return yaml.safe_dump(pool)


_MOVE: Final = Entry(
    kind="disruption",
    workflow=f"{CLUSTER}/disrupt/9f1c",
    run="r",
    began=NOW - 9 * HOUR,
    ended=NOW - 9 * HOUR + 212.0,
    outcome="done",
    reason="Underutilized",
    method="single",
    pool="default",
    nodes=("ip-10-0-9-2.eu-west-1.compute.internal",),
    claims=("default-a1",),
    replacements=("default-b7",),
    pods=11,
    price_before=0.384,
    price_after=0.192,
    saved=0.192,
    shares=(Share(namespace="shop", share=0.75), Share(namespace="search", share=0.25)),
)
_LAUNCH: Final = Entry(
    kind="launch",
    workflow=f"{CLUSTER}/claim/default-b7",
    run="r",
    began=NOW - 9 * HOUR + 15.0,
    ended=NOW - 9 * HOUR + 74.0,
    outcome="initialised",
    reason="Underutilized",
    pool="default",
    claims=("default-b7",),
    instance_type="c7g.xlarge",
    zone="eu-west-1b",
    capacity_type="spot",
    disruption=_MOVE.workflow,
)
_END: Final = replace(
    _LAUNCH,
    kind="termination",
    workflow=f"{CLUSTER}/claim/default-a1",
    claims=("default-a1",),
    nodes=_MOVE.nodes,
    began=NOW - 9 * HOUR + 90.0,
    ended=NOW - 9 * HOUR + 210.0,
    outcome="terminated",
    instance_type="",
)
ENTRIES: Final = (
    _MOVE,
    _LAUNCH,
    _END,
    replace(
        _MOVE,
        workflow=f"{CLUSTER}/disrupt/a04e",
        began=NOW - 6 * HOUR,
        ended=NOW - 6 * HOUR + 31.0,
        outcome="cancelled",
        reason="Drifted",
        pool="batch",
        nodes=(GUARDED,),
        claims=("batch-58c4",),
        replacements=("batch-c2",),
        saved=-0.04,
        by="alice",
        message="a release",
    ),
    replace(
        _MOVE,
        workflow=f"{CLUSTER}/disrupt/b37d",
        began=NOW - 2 * HOUR,
        ended=NOW - 2 * HOUR + 95.0,
        reason="Empty",
        nodes=("ip-10-0-8-40.eu-west-1.compute.internal", "ip-10-0-8-41.eu-west-1.compute.internal", "ip-10-0-8-42"),
        claims=("default-d1", "default-d2", "default-d3"),
        replacements=(),
        pods=0,
        saved=0.576,
        shares=(),
    ),
    replace(
        _LAUNCH,
        workflow=f"{CLUSTER}/claim/default-e9",
        began=NOW - 31.0,
        ended=None,
        outcome="running",
        reason="Provisioned",
        claims=("default-e9",),
        disruption="",
    ),
)
STORIES: Final = HistoryAnswer(
    name=HELD,
    stories=(
        Story(
            workflow=f"{CLUSTER}/disrupt/c81a",
            type="DisruptNodes",
            status="completed",
            started=NOW - 765.0,
            ended=NOW - 720.0,
            lines=(
                Line(
                    at=NOW - 765.0,
                    text=f"DisruptNodes starts: Drifted of {HELD}: 11 pods, 1 replacement, $0.3840/h → $0.1920/h",
                ),
                Line(at=NOW - 764.8, text="mark and taint default-40c4 for Drifted (0.1s)", seconds=0.1),
                Line(at=NOW - 764.6, text="create 1 replacement -> default-f3 (0.1s)", seconds=0.1),
                Line(at=NOW - 720.4, text="wait for the replacement -> ready (44s)", seconds=44.0),
                Line(at=NOW - 720.1, text="delete NodeClaim default-40c4 (0.1s)", seconds=0.1),
            ),
        ),
        Story(
            workflow=f"{CLUSTER}/claim/default-40c4",
            type="TerminateNode",
            status="running",
            phase="draining",
            started=NOW - 720.0,
            lines=(
                Line(at=NOW - 719.9, text="TerminateNode starts"),
                Line(at=NOW - 719.7, text="taint the node (0.1s)", seconds=0.1),
            ),
            now=(
                Pending(
                    step="drain the node",
                    since=NOW - 719.0,
                    attempt=1,
                    runs=True,
                    progress="1 pod left: default/api-0: a PDB blocks its eviction, asked 71 times",
                ),
            ),
        ),
    ),
)
VERSIONS: Final = VersionsAnswer(
    worker="0.1.0", workers=("worker-6f9c-1", "worker-6f9c-2"), kubernetes="v1.33.4-eks-1234567", temporal="1.29.0"
)
_LINK: Final = fine("Temporal server", "temporal.prod.internal:7233, TLS, namespace dovetail")
CHECKS: Final[tuple[Check, ...]] = (
    _LINK,
    fine("search attributes", "all there"),
    warned(
        "retention",
        "a workflow's history is kept for 3d: what happened before is lost",
        "temporal operator namespace update --retention 720h dovetail",
    ),
    fine("Scheduler", "runs, this run for 3h12m"),
    fine("planning", "goes on; 1 plan waits for its second look"),
    fine("workers on control", "worker-6f9c-1, worker-6f9c-2"),
    fine("API server", "https://7A1B.gr7.eu-west-1.eks.amazonaws.com, v1.33.4-eks-1234567"),
    fine("clock", "the API server's clock is 0.2s ahead of this one"),
    warned(
        "NodePool gpu",
        "it has launched nothing for 26m: 4 instances in a row never joined",
        "see `dovetail log --pool gpu`, then `dovetail resume --pool gpu`",
    ),
    fine("cloud", "2 NodePools list their catalogue: 712 and 41 instance types"),
)
SEEN_FROM_HERE: Final[tuple[Check, ...]] = (
    *CHECKS[6:],
    failed(
        "NodePool general-purpose",
        "EC2NodeClass general-purpose: no subnet has the tag karpenter.sh/discovery=prod-eu1",
        "no node is made for this pool until its NodeClass is ready",
    ),
)
NOBODY_LISTENS: Final = (
    "no Temporal server at temporal.prod.internal:7233: Connection refused (os error 111) (set TEMPORAL_ADDRESS)"
)
BEFORE: Final[tuple[Check, ...]] = (
    _LINK,
    CHECKS[2],
    fine("API server", "https://7A1B.gr7.eu-west-1.eks.amazonaws.com, v1.33.4-eks-1234567"),
    fine("clock", "the API server's clock is 0.2s ahead of this one"),
    warned(
        "custom resources",
        "not served: NodePool, NodeClaim, EC2NodeClass",
        "helm upgrade --install dovetail-crd deploy/charts/dovetail-crd, first",
    ),
    warned(
        "alone",
        "Karpenter runs in this cluster: it holds the lease kube-system/karpenter-leader-election",
        "scale it to nothing first; until then no worker of ours takes a step",
    ),
    skipped("cloud", "there is no NodePool to list a catalogue for"),
    rights_check(
        (
            Rehearsed(call="ec2:RunInstances", allowed=True, said=""),
            Rehearsed(call="ec2:CreateFleet", allowed=True, said=""),
            Rehearsed(call="iam:PassRole", allowed=None, said="only a launch with a role asks for it"),
        )
    ),
)


def shadow_report() -> ShadowReport:
    """Two days beside a Karpenter: what both do, and what each does alone."""
    began = NOW - 2 * DAY
    seen = Comparing(since=began)

    def command(claim: str, saves: float, reason: str = "Underutilized") -> DisruptionCommand:
        target = Target(
            claim=claim,
            claim_uid=claim,
            node=f"ip-10-0-9-{len(claim)}{claim[-1]}.eu-west-1.compute.internal",
            node_uid="",
            provider_id="",
            pool="default",
        )
        return DisruptionCommand(reason=reason, method="single", targets=(target,), savings=saves)

    def gone(claim: str, reason: str) -> GoneClaim:
        return GoneClaim(claim=claim, node=command(claim, 0.0).targets[0].node, pool="default", reason=reason)

    seen.decided([command("default-1", 0.19)], 15.0, began + HOUR)
    seen.left(gone("default-1", "Underutilized"), began + HOUR + 60.0)
    seen.left(gone("default-22", "Drifted"), began + 30 * HOUR)
    seen.decided([command("default-333", 0.38)], 15.0, NOW - 5 * HOUR)
    cheap, dear = (
        LaunchedNode(pool="default", type=kind, price=price)
        for kind, price in (("c7g.xlarge", 0.145), ("m6i.xlarge", 0.192))
    )
    seen.launched(compared_launch(NOW - 7 * HOUR, ["shop/cart-1", "shop/cart-2"], (cheap,), (cheap,)))
    seen.launched(compared_launch(NOW - 3 * HOUR, ["shop/search-1"], (cheap,), (dear,)))
    return seen.report(NOW)


@dataclass(frozen=True, slots=True)
class Watched:
    """Stands for the shadow of a worker."""

    def report(self) -> ShadowReport:
        return shadow_report()


class RecordedSource(WorkerSource):
    """What a worker answers from, with a record that is made up."""

    async def paces(self) -> Paces:
        return paces_of(ENTRIES)

    async def temporal(self) -> Any:
        return None

    async def look(self, reads: Kinds = PLACEMENT) -> Look:
        return await look_now(self.settings, self.opened, None, "", reads)


async def recorded(client: object, settings: object, kept: object, period: Period, most: int = 0) -> Entries:
    """What began in that time."""
    return Entries(entries=tuple(each for each in ENTRIES if each.began >= period.since))


@dataclass(frozen=True, slots=True)
class Stage:
    """What a command finds: the API server with the worker's API behind it, and the world for what is written."""

    served: Served
    world: SimulatedWorld
    folder: Path


def standing_still(patch: pytest.MonkeyPatch) -> None:
    """Every clock that an answer is made by shows the same moment."""
    opened = SimulatedAdapter.open

    def opened_then(file: Path, actor: str = "dovetail", *, gated: Any = ()) -> SimulatedAdapter:
        return opened(file, actor, lambda: NOW, gated)

    patch.setattr(SimulatedAdapter, "open", opened_then)
    patch.setattr("time.time", lambda: NOW)


def _world(folder: Path) -> SimulatedWorld:
    world = SimulatedWorld.create(folder / "world.db", clock=lambda: NOW - 9 * 60.0)
    bodies = [a_node_class(), *_objects()]
    for body in bodies:
        world.apply(body)
    world.player().settle(NOW - 9 * 60.0)
    for body in bodies:
        if created := body["metadata"].get("creationTimestamp"):
            _revise(world, body["kind"], body["metadata"]["name"], creationTimestamp=created)
    for claim in world.objects("NodeClaim"):
        owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
        owner |= {key: claim["metadata"][key] for key in ("name", "uid")}
        _revise(world, "Node", claim["status"]["nodeName"], ownerReferences=[owner])
    _revise(world, "Namespace", "kube-system", uid=UID)
    return world


def _revise(world: SimulatedWorld, kind: str, name: str, **metadata: Any) -> None:
    found = world.get(kind, name)
    assert found is not None
    found["metadata"] |= metadata
    world.put_raw(found)


def _saying(answer: object) -> Callable[..., Awaitable[object]]:
    async def say(*_: object) -> object:
        return answer

    return say


async def _away(_: object) -> object:
    raise TemporalAway(NOBODY_LISTENS)


async def _seen_from_here(world: object, settings: object, ready: Coroutine[object, object, None]) -> tuple[Check, ...]:
    ready.close()
    return SEEN_FROM_HERE


def made_up(patch: pytest.MonkeyPatch) -> None:
    """What Temporal, a cloud and the disk would say."""

    def written(_: object, file: Path) -> None:
        file.write_bytes(b"." * RECORDED)

    patch.setattr(record, "entries_of", recorded)
    patch.setattr(record, "stories_or_kept", _saying(STORIES))
    patch.setattr(checks, "versions_of", _saying(VERSIONS))
    patch.setattr(worker_source, "doctor_of_worker", _saying(DoctorAnswer(cluster=CLUSTER, checks=CHECKS)))
    patch.setattr(judging, "connect", _away)
    patch.setattr(judging, "cluster_checks", _seen_from_here)
    patch.setattr(judging, "preflight", _saying(DoctorAnswer(cluster=CLUSTER, checks=BEFORE)))
    patch.setattr(sources, "write_recording", written)
    _other_cluster(patch)


def _other_cluster(patch: pytest.MonkeyPatch) -> None:
    """Temporal, in which the name belongs to a cluster that is gone."""

    for name in ("described_or_none", "_refuse_beside_workers", "register_search_attributes", "_begin_anew"):
        patch.setattr(taking_over, name, _saying(None))
    patch.setattr(taking_over, "owner_of", _saying(GONE_UID))
    patch.setattr(taking_over, "_end", _saying(146))
    patch.setattr(taking_over, "client_of", lambda *_: None)
    patch.setattr(connecting, "connect", _saying(None))


_flights: dict[str, bytes] = {}  # each process packs them once: every stage has the same world


async def _keep_flights(api: Api, settings: Settings) -> None:
    """A decision about nodes and one about pods, as the recorder would have kept them three hours ago."""
    if not _flights:
        _flights.update(_packed_flights((await api.source.look()).snapshot, settings))
    store = FolderObjects(Path(settings.flights))
    for name, body in _flights.items():
        await store.put(name, body)


def _packed_flights(found: Snapshot, settings: Settings) -> Iterator[tuple[str, bytes]]:
    snapshot = replace(found, now=NOW - 3 * HOUR)
    for later, kind in enumerate(get_args(DecisionKind)):
        seen = replace(snapshot, now=snapshot.now + later)
        plan = (
            choose(seen, disruption_settings(settings), never)
            if kind == "disruption"
            else plan_provisioning(seen, placement_settings(settings), never)[0]
        )
        flight = Recording(
            cluster=CLUSTER,
            version="0.1.0",
            settings=deciding(settings),
            snapshot=seen,
            decision=Decision(kind=kind, plan=plan),
        )
        moment = format_time(seen.now).replace(":", "-").removesuffix("Z")
        yield f"{CLUSTER}/flights/v1/{moment}.000Z_{kind}_{RECORDED}.gz", packed(flight)


@contextmanager
def staged(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """For as long as the block lasts."""
    world = _world(folder)
    standing_still(patch)
    made_up(patch)
    flights = str(folder / "flights")
    settings = Settings.model_validate({"CLUSTER_NAME": CLUSTER, "DOVETAIL_FLIGHTS": flights}).model_copy(
        update={"world": world.file}
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(awaited: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaited, loop).result(60.0)

    opened = run(open_world(settings))
    api = Api(RecordedSource(settings, opened, TemporalPresence(CLUSTER), cast(Shadow, Watched())))
    run(_keep_flights(api, settings))

    def answer(target: str) -> Reply:
        code, content, body = run(api.answer(target))
        return code, content, body if isinstance(body, str) else body.decode()

    (folder / "change.yaml").write_text(changed_pool())
    try:
        with serving_by(folder, answer) as served:
            yield Stage(served, world, folder)
    finally:
        run(opened.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
