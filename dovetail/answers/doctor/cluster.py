"""The checks of `dovetail doctor` on the cluster and its cloud.

The API server itself is asked for rights, kinds and the clock; the view and the catalogues report what cannot be read
and which pools cannot be listed, as the planners see them.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final

from dovetail.answers.doctor.before_v1 import old_annotations_checks, old_objects_checks
from dovetail.answers.doctor.findings import Check, failed, fine, rest_skipped, warned
from dovetail.answers.doctor.judged import NAME, judged
from dovetail.answers.doctor.prometheus import prometheus_check
from dovetail.answers.look.pause_words import pause_lines
from dovetail.answers.look.readiness import not_ready_words, where_to_mend
from dovetail.answers.wording import duration_text, plural, shown
from dovetail.lifecycle.unfinished import lost_everything
from dovetail.model.names import READY
from dovetail.model.objects.watched_kinds import FLEET
from dovetail.model.places.move_changes import GUARD
from dovetail.model.pools import NodePool
from dovetail.model.reasons.refusals import refusal_of
from dovetail.model.snapshot import Snapshot
from dovetail.ports.cloud import Instance
from dovetail.ports.failures import Failure, Misconfigured
from dovetail.ports.inspection import ClusterFacts
from dovetail.rules.brake.unused_launches import stop_of
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

# Deadlines come from the API server's clock and are compared with ours; a plan is refused after a minute.
CLOCK_WARNS: Final = 2.0
CLOCK_FAILS: Final = 15.0
CLOUD_SECONDS: Final = 20.0
OF_PLACES: Final = "patch pods/status"  # the one right that nothing else depends on
NOTHING_FOR_IT: Final = "no node is made for this pool, and none is consolidated"
SHOWN: Final = 10  # of the objects that are set aside
SHOWN_WORDS: Final = 200


async def cluster_checks(world: World, settings: Settings, ready: Awaitable[None]) -> tuple[Check, ...]:
    seen = asyncio.ensure_future(ready)
    answers = await asyncio.gather(
        _server(world), _view(world, settings, seen), cloud_check(world), warnings_check(world, settings, seen)
    )
    return tuple(check for checks in answers for check in checks)


async def _server(world: World) -> tuple[Check, ...]:
    try:
        facts = await world.inspection.facts()
    except Failure as error:
        return (
            failed("API server", str(error), "see the kubeconfig and the network"),
            rest_skipped("the API server", "the API server does not answer", "clock, alone, rights, custom resources"),
        )
    return (
        fine("API server", f"{facts.address}, {facts.version}"),
        clock_check(facts),
        _fitness(world),
        _rights(facts),
        *_guards(facts),
        kinds_check(facts),
        *old_objects_checks(facts),
    )


def clock_check(facts: ClusterFacts) -> Check:
    ahead = abs(facts.clock_ahead)
    way = "ahead of" if facts.clock_ahead >= 0 else "behind"
    error = f" (give or take {facts.clock_error:.1f}s)" if facts.clock_error else ""
    found = f"the API server's clock is {duration_text(round(ahead, 1))} {way} this one{error}"
    if ahead - facts.clock_error <= CLOCK_WARNS:
        return fine("clock", found)
    advice = "set the clocks right (NTP): deadlines, grace periods and windows come too early or too late"
    return (failed if ahead > CLOCK_FAILS else warned)("clock", found, advice)


def _fitness(world: World) -> Check:
    """Whether a worker that sees the same as we do would act."""
    why = world.why_unfit()
    if not why:
        return no_karpenter(world)
    return failed("alone", why, "until then no worker takes a step; Events on the NodePools say so")


def no_karpenter(world: World) -> Check:
    """None is seen where one counts. A Lease elsewhere may be anybody's, so a person must judge it."""
    if elsewhere := world.lease_elsewhere():
        return warned("alone", elsewhere, "if a Karpenter runs there, stop it, or set LEADER_ELECTION_NAMESPACE")
    return fine("alone", "no Karpenter runs in this cluster")


def _rights(facts: ClusterFacts) -> Check:
    missing = facts.missing_rights
    if not missing and facts.missing_memory:
        found = f"there is no ConfigMap {facts.missing_memory}: each worker remembers shortages by itself alone"
        return warned("rights", found, "apply deploy/kubernetes/shortages.yaml in the worker's namespace")
    if not missing:
        return fine("rights", "everything that the steps need")
    if missing == (OF_PLACES,):
        found = f"{OF_PLACES} is missing: pods are not nominated for the nodes that are made for them"
        return warned("rights", found, "apply deploy/kubernetes/places.yaml, or set DOVETAIL_COST_KEEP_PLACES=false")
    return failed(
        "rights", f"{plural(len(missing), 'right')} missing: {shown(missing, 6)}", "apply deploy/kubernetes/rbac.yaml"
    )


def _guards(facts: ClusterFacts) -> tuple[Check, ...]:
    """The policies without which a right of ours would be the whole cluster: what needs them does not happen."""
    if not facts.unproven:
        return ()
    advice = "apply the file of that name in deploy/kubernetes with the worker's identity in it"
    return (failed("guards", "; ".join(facts.unproven), advice),)


def kinds_check(facts: ClusterFacts) -> Check:
    if not facts.missing_kinds:
        return fine("custom resources", "all kinds are served")
    return failed("custom resources", f"not served: {', '.join(facts.missing_kinds)}", "kubectl apply -f deploy/crds")


async def _view(world: World, settings: Settings, ready: Awaitable[None]) -> tuple[Check, ...]:
    try:
        await ready
        snapshot = world.view.snapshot(FLEET)
    except (Failure, TimeoutError) as error:
        why = str(error) or "it is not complete within 20 s"
        return (
            failed("view", why, "no decision is made on a view that is not complete; see rights and custom resources"),
            rest_skipped(
                "the view",
                "there is no view",
                f"watches, pauses, launches, unreadable objects, {NAME}, NodePools, instances",
            ),
        )
    pools, places = await _pools(world, snapshot), await _places(world, snapshot)
    set_aside = (*_moves(world, settings), _pauses(snapshot), _unreadable(world), await judged(world, settings))
    seen = (fine("view", _counted(snapshot)), _watches(world), launches_check(snapshot))
    set_aside += (*await prometheus_check(world, snapshot), *old_annotations_checks(snapshot))
    return (*seen, *set_aside, *pools, *places)


def launches_check(snapshot: Snapshot) -> Check:
    """How the cloud answers launches: it may allow calls that only look and refuse those that launch."""
    found = {claim.name: refusal_of(claim) for claim in snapshot.claims.values() if snapshot.is_ours(claim.node_class)}
    refused = [f"NodeClaim {name}: {words}" for name, words in sorted(found.items()) if words]
    if not refused:
        return fine("launches", "none is refused")
    words = f"{plural(len(refused), 'launch')} refused: {shown(refused, 2)}"
    return warned(
        "launches", words, "`dovetail history NODECLAIM` has every try; see the role, quotas and the NodeClass"
    )


def _watches(world: World) -> Check:
    """Kinds that only some objects depend on; without the others there is no view."""
    stale = world.view.stale()
    if not stale:
        return fine("watches", "every kind is up to date")
    advice = "what depends on these kinds is set aside, the rest goes on; see rights and the API server"
    return failed("watches", "; ".join(stale.values()), advice)


def _moves(world: World, settings: Settings) -> tuple[Check, ...]:
    """Whether the right to change Deployments is limited to moves; otherwise no pod is moved."""
    if not settings.moves or world.deployments is None:
        return ()
    if world.view.moves().is_guarded:
        return (fine("moves", f"the admission policy {GUARD} keeps the worker to what a move changes"),)
    found = f"the ValidatingAdmissionPolicy {GUARD} or its binding is missing or lets pass: no pod is moved"
    return (failed("moves", found, "apply deploy/kubernetes/moves.yaml (chart: moves.enabled)"),)


def _pauses(snapshot: Snapshot) -> Check:
    """What a person has paused, so that it does not stay unnoticed for a week."""
    lines = pause_lines(snapshot)
    if not lines:
        return fine("pauses", "nothing is paused")
    return warned(
        "pauses",
        "; ".join(lines),
        "dovetail resume, with --pool where a NodePool is named; a Freeze ends where it is deleted",
    )


def _counted(snapshot: Snapshot) -> str:
    kinds = ((snapshot.pools, "NodePool"), (snapshot.claims, "NodeClaim"), (snapshot.nodes, "Node"))
    counts = [plural(len(found), word) for found, word in kinds]
    return f"complete: {', '.join(counts)}, {plural(len(snapshot.pods), 'Pod')}"


def _unreadable(world: World) -> Check:
    unreadable = world.view.unreadable()
    if not unreadable:
        return fine("unreadable objects", "none")
    first = "; ".join(f"{u.kind} {u.name}: {u.field}: {u.message[:SHOWN_WORDS]}" for u in unreadable[:SHOWN])
    found = f"{plural(len(unreadable), 'object')} left out of every decision: {first}"
    advice = "put them right; their nodes are left alone until then, but for those of pods that have ended"
    return warned("unreadable objects", found, advice)


async def _pools(world: World, snapshot: Snapshot) -> tuple[Check, ...]:
    """Whether each pool and its NodeClass are ready and its instance types can be listed."""
    found = [await _pool(world, pool) for _, pool in sorted(snapshot.pools.items())]
    return tuple(found) or (warned("NodePools", "there is none", "apply one: without a NodePool nothing is done"),)


async def _pool(world: World, pool: NodePool) -> Check:
    reference, name = pool.template.node_class, f"NodePool {pool.name}"
    if (reference.group, reference.kind) not in world.catalogues.supported_classes():
        return warned(name, f"{reference.kind} is no NodeClass of this cloud: it is left alone", "see nodeClassRef")
    try:
        state = await world.catalogues.node_class(reference)
        catalogue = await world.catalogues.catalogue(pool)
    except Failure as error:
        return failed(name, str(error), NOTHING_FOR_IT)
    if not state.found or state.ready == "False":
        why = state.message or ("not ready" if state.found else "missing")
        advice = f"{where_to_mend(pool)}: no node is made for this pool until its NodeClass is ready"
        return failed(name, f"{reference.kind} {reference.name}: {why}", advice)
    if (words := not_ready_words(pool)) and not pool.is_true(READY):
        return failed(name, words, f"{where_to_mend(pool)}: no node is made for this pool until it is ready")
    if catalogue.error or not catalogue.types:
        return failed(name, catalogue.error or "no instance type at all", NOTHING_FOR_IT)
    if (stop := stop_of(pool)) is not None:
        advice = f"mend the cause, then: dovetail resume --pool {pool.name}"
        return failed(name, f"launches are stopped since {stop.since}: {stop.why}", advice)
    return fine(name, f"{plural(len(catalogue.types), 'instance type')}")


async def _places(world: World, snapshot: Snapshot) -> tuple[Check, ...]:
    """Whether this cloud can see the instances at all: from another region or account they would all seem to be
    gone."""
    claim = next((claim for _, claim in sorted(snapshot.claims.items()) if claim.provider_id), None)
    try:
        async with asyncio.timeout(CLOUD_SECONDS):
            if lost_everything(snapshot):
                return _left_running(await world.cloud.list_instances())
            if claim is not None:
                await world.cloud.find(provider_id=claim.provider_id)
    except Misconfigured as error:
        advice = "set it right before anything else: nothing is terminated or released until then"
        return (failed("instances", str(error), advice),)
    except (Failure, TimeoutError):
        return ()  # the check of the cloud itself says why
    return ()


def _left_running(instances: Sequence[Instance]) -> tuple[Check, ...]:
    """What nobody ends, and no Event tells of: those are on NodePools."""
    left = sorted(each.provider_id for each in instances if each.state != "terminating")
    if not left:
        return ()
    found = f"{plural(len(left), 'instance')} of this cluster without any NodePool or NodeClaim: {shown(left, 6)}"
    return (failed("instances", found, "nobody ends them: terminate them, or make a NodePool if they are few"),)


async def cloud_check(world: World) -> tuple[Check, ...]:
    try:
        async with asyncio.timeout(CLOUD_SECONDS):
            instances = await world.cloud.list_instances()
    except (Failure, TimeoutError) as error:
        why = str(error) or f"no answer within {CLOUD_SECONDS:.0f} s"
        return (failed("cloud", why, "see credentials, region and network: nothing is launched or terminated"),)
    return (fine("cloud", f"answers; {plural(len(instances), 'instance')} of this cluster"),)


async def warnings_check(world: World, settings: Settings, seen: "asyncio.Future[None]") -> tuple[Check, ...]:
    """Whether the cloud's queue of warnings can be read: the step that reads it runs on while it cannot. A cloud may
    keep it in the cluster, so the view is filled first; whether it can be is another check's to say."""
    if world.interruptions is None or settings.beside_karpenter:
        return ()
    await asyncio.wait([seen])
    try:
        async with asyncio.timeout(CLOUD_SECONDS):
            await world.interruptions.try_reading()
    except (Failure, TimeoutError) as error:
        why = str(error) or f"no answer within {CLOUD_SECONDS:.0f} s"
        advice = "see the queue's name, the rights and the network: nodes that the cloud takes away are not drained"
        return (failed("warnings", why, advice),)
    return (fine("warnings", "the cloud's queue can be read"),)
