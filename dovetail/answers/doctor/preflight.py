"""The checks of `dovetail doctor --preflight` on a cluster and a cloud where nothing of ours runs yet.

Made with the caller's credentials, which are the worker's only if the command runs as the worker will. What is missing
but comes with the installation is not a failure.
"""

import asyncio
from typing import Final

from dovetail.answers.doctor.before_v1 import old_objects_checks
from dovetail.answers.doctor.cluster import CLOUD_SECONDS, clock_check, cloud_check, kinds_check, no_karpenter
from dovetail.answers.doctor.findings import Check, failed, fine, rest_skipped, skipped, warned
from dovetail.answers.wording import shown
from dovetail.ports.cloud import Rehearsed
from dovetail.ports.failures import Failure
from dovetail.ports.inspection import ClusterFacts
from dovetail.wiring.world import World

RIGHTS: Final = "rights in the cloud"


async def preflight_checks(world: World) -> tuple[Check, ...]:
    server, cloud, rights = await asyncio.gather(_server(world), cloud_check(world), cloud_rights_check(world))
    return (*server, *cloud, rights)


async def _server(world: World) -> tuple[Check, ...]:
    try:
        facts = await world.inspection.facts()
    except Failure as error:
        rest = rest_skipped("the API server", "the API server does not answer", "clock, custom resources, alone")
        return failed("API server", str(error), "see the kubeconfig and the network"), rest
    server = fine("API server", f"{facts.address}, {facts.version}")
    return server, clock_check(facts), _kinds(facts), _alone(world), *old_objects_checks(facts)


def _kinds(facts: ClusterFacts) -> Check:
    """Missing kinds come with the chart of the definitions."""
    found = kinds_check(facts)
    if found.verdict != "fails":
        return found
    return warned(found.name, found.found, "helm upgrade --install dovetail-crd deploy/charts/dovetail-crd, first")


def _alone(world: World) -> Check:
    """Two programs that plan the same nodes would undo each other's work."""
    why = world.why_unfit()
    if not why:
        return no_karpenter(world)
    return warned("alone", why, "scale it to nothing first; until then no worker of ours takes a step")


async def cloud_rights_check(world: World) -> Check:
    """Tries the cloud's rights by dry runs of what a worker will ask for."""
    if world.rehearsal is None:
        return skipped(RIGHTS, "this cloud can only be asked by doing")
    try:
        async with asyncio.timeout(CLOUD_SECONDS):
            asked = await world.rehearsal()
    except (Failure, TimeoutError) as error:
        why = str(error) or f"no answer within {CLOUD_SECONDS:.0f} s"
        return failed(RIGHTS, why, "see credentials, region and network")
    return rights_check(asked)


def rights_check(asked: tuple[Rehearsed, ...]) -> Check:
    """The result of the dry runs."""
    refused = [each for each in asked if each.allowed is False]
    if refused:
        advice = "the policies stand in deploy/; run this with the credentials that workers will have"
        return failed(RIGHTS, "; ".join(f"{each.call} refused: {each.said}" for each in refused), advice)
    unsaid = [each for each in asked if each.allowed is None]
    allowed = shown([each.call for each in asked if each.allowed], len(asked))
    if not unsaid:
        return fine(RIGHTS, f"dry runs allowed: {allowed}")
    parts = [f"dry runs allowed: {allowed}"] if allowed else []
    parts.append(f"cannot be said beforehand: {'; '.join(f'{each.call} ({each.said})' for each in unsaid)}")
    return warned(
        RIGHTS, "; ".join(parts), "compare the role with the policies in deploy/: no call here can show these"
    )
