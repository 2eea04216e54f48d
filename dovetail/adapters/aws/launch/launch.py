"""Carries out a frozen launch: templates, one fleet, one instance or one for each claim of a group (AWS-85, AWS-88 to
AWS-91, AWS-181).

The second half of a launch, repeated as often as needed under one token. After a failure that leaves the result open
(silence, an internal error) there may be an instance; it is raised, and the same call is repeated.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.offerings_cache import OfferingsCache
from dovetail.adapters.aws.catalogue.shortages import Shortage, class_scope, group_scope
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.failures import TEMPLATE_MISSING, Denied, is_passing
from dovetail.adapters.aws.instances.instance import InstanceFacts, instance_of
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.launch.fleet_answers import (
    FleetError,
    FleetInstance,
    launched_instances,
    outcome,
    read_errors,
    shortages_of,
    warnings_of,
)
from dovetail.adapters.aws.launch.fleet_request import LaunchAttempt, fleet_request, instance_tags
from dovetail.adapters.aws.launch.frozen_launch import FrozenLaunch, LaunchGroup
from dovetail.adapters.aws.launch.launch_templates import LaunchTemplates
from dovetail.adapters.aws.launch.launch_terms import LaunchTerms
from dovetail.adapters.aws.launch.refusal_reasons import IMAGE_REFUSALS, NO_ADDRESSES, reason_for
from dovetail.adapters.aws.launch.template_data import Template
from dovetail.adapters.aws.launch.template_maker import TemplateMaker
from dovetail.adapters.aws.meters import count
from dovetail.adapters.aws.sized_instances import SizedInstances
from dovetail.adapters.aws.tags import template_tags
from dovetail.adapters.aws.user_data.bootstrap import BadUserData
from dovetail.adapters.kubernetes_json.parsing.class_hashes import (
    EC2_NODE_CLASS_HASH_VERSION as HASH_VERSION,
)
from dovetail.model import names as core
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Instance, LaunchRefused, NoCapacity
from dovetail.ports.failures import Refused

_RESERVED_SECONDS: Final = 60.0  # a full reservation is looked at again with the next description
_OF_RESERVATIONS: Final = ("ReservationCapacityExceeded", "InvalidCapacityReservation")  # how such codes begin
_TEMPLATES_MISSING: Final = frozenset({TEMPLATE_MISSING, "InvalidLaunchTemplateId.NotFound"})  # in a fleet's errors
_SHARED_SECONDS: Final = 0.5  # for claims of a group that come a little later: shorter than the pause before a retry
_TOKEN_MISUSED: Final = "IdempotentParameterMismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchParts:
    """What a launch uses besides the calls themselves."""

    templates: LaunchTemplates
    sized: SizedInstances
    inventory: Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What EC2 has answered, and what was made of it once for all claims of a group."""

    launched: tuple[FleetInstance, ...]
    errors: tuple[FleetError, ...]
    remembered: bool  # whether anything is known as short now
    placement: str  # the id of the placement group


class Launcher:
    def __init__(
        self,
        calls: Calls,
        offerings: OfferingsCache,
        cluster: Cluster,
        parts: LaunchParts,
        clock: Callable[[], float],
    ) -> None:
        self._calls, self._offerings, self._cluster, self._clock = calls, offerings, cluster, clock
        self._templates, self._sized, self._inventory = parts.templates, parts.sized, parts.inventory
        self._shared: dict[str, asyncio.Task[_Answer | LaunchRefused]] = {}  # by token

    async def launch(self, attempt: LaunchAttempt) -> Instance | NoCapacity | LaunchRefused:
        """The instance, or why there is none. If an image has vanished in the meantime, the next claim knows that."""
        found = await self._launched(attempt)
        if isinstance(found, LaunchRefused) and found.reason in IMAGE_REFUSALS:
            self._offerings.sources.images.forget()
        return found

    async def _launched(self, attempt: LaunchAttempt) -> Instance | NoCapacity | LaunchRefused:
        answer = await (self._asked(attempt) if attempt.share is None else self._asked_once(attempt))
        if isinstance(answer, LaunchRefused):
            return answer
        number = 0 if attempt.share is None else attempt.share.number
        if number >= len(answer.launched):
            return outcome(answer.errors, remembered=answer.remembered)
        launched = answer.launched[number]
        if memory_of(attempt.claim.annotations).asks_again:
            await self._sells_again(attempt, launched, answer.placement)
        return replace(await self._instance(attempt, launched), warnings=warnings_of(answer.errors))

    async def _asked_once(self, attempt: LaunchAttempt) -> _Answer | LaunchRefused:
        """The same answer, or failure, for all claims of a group that ask together."""
        task = self._shared.get(attempt.token)
        if task is None:
            task = self._shared[attempt.token] = asyncio.create_task(self._asked(attempt))
            loop = asyncio.get_running_loop()
            task.add_done_callback(lambda _: loop.call_later(_SHARED_SECONDS, self._shared.pop, attempt.token, None))
        return await asyncio.shield(task)

    async def _asked(self, attempt: LaunchAttempt) -> _Answer | LaunchRefused:
        """A template that has vanished is made again, once."""
        refused = await self._make_templates(attempt)
        if refused is not None:
            return refused
        answer = await self._request(attempt)
        if isinstance(answer, Denied) and answer.code == TEMPLATE_MISSING:
            self._forget_templates(attempt)
            refused = await self._make_templates(attempt)
            if refused is not None:
                return refused
            answer = await self._request(attempt)
        return _denied(answer) if isinstance(answer, Denied) else await self._conclude(attempt, answer)

    def _forget_templates(self, attempt: LaunchAttempt) -> None:
        for group in attempt.launch.groups:
            self._templates.forget(group.template)

    async def _request(self, attempt: LaunchAttempt) -> Json | Denied:
        taken, used = self._take_addresses(attempt), Counter[str]()
        try:
            answer = await self._calls.attempt("ec2", "CreateFleet", **fleet_request(attempt))
            used = Counter() if isinstance(answer, Denied) else _subnets_used(answer)
            return answer
        finally:
            for subnet, addresses in taken.items():
                self._offerings.sources.subnets.take(subnet, -addresses * (attempt.instances - used[subnet]))

    async def _make_templates(self, attempt: LaunchAttempt) -> LaunchRefused | None:
        for group in attempt.launch.groups:
            refused = await self._templates.once(group.template, partial(self._make_template, attempt, group))
            if refused is not None:
                return refused
        return None

    async def _make_template(self, attempt: LaunchAttempt, group: LaunchGroup) -> LaunchRefused | None:
        if await self._templates.exists(group.template):
            return None
        try:
            template = await self._remade(attempt, group)
        except BadUserData as error:
            return LaunchRefused(reason="LaunchFailed", message=str(error))
        if template.name != group.template:
            # The class has changed since the launch was frozen, and its template was never made, so nothing was
            # launched with it. Another generation asks for what the class says now.
            return LaunchRefused(reason="LaunchTemplateNotFound", message="the node class has changed meanwhile")
        denied = await self._templates.make(template)
        if denied is None:
            return None
        text = f"creating instance, getting launch template configs, {denied.code}: {denied.message}"
        return LaunchRefused(reason=reason_for([(denied.code, denied.message)]), message=text)

    async def _remade(self, attempt: LaunchAttempt, group: LaunchGroup) -> Template:
        launch, settings = attempt.launch, self._offerings.sources.settings
        facts = await self._cluster.for_launch(with_cidr=attempt.node_class.family == "AL2023")
        placement = await self._offerings.sources.groups.of_class(attempt.node_class)
        maker = TemplateMaker(
            settings=settings,
            region=self._calls.region,
            facts=facts,
            node_class=attempt.node_class,
            claim=attempt.claim,
            tags=template_tags(launch.tags),
            fleet=launch.fleet,
            group_id=placement.id if placement else None,
        )
        return maker.template(group.terms)

    async def _conclude(self, attempt: LaunchAttempt, answer: Json) -> _Answer:
        errors = read_errors(answer)
        if any(error.code in _TEMPLATES_MISSING for error in errors):
            self._forget_templates(attempt)  # this token answers the same for ever; the next launch looks
        placement = await self._offerings.sources.groups.of_class(attempt.node_class)
        group = "" if placement is None else placement.id
        remembered = await self._remember(attempt, errors, group_scope(group, attempt.launch.fleet.partition or ""))
        return _Answer(launched=launched_instances(answer), errors=errors, remembered=remembered, placement=group)

    async def _sells_again(self, attempt: LaunchAttempt, launched: FleetInstance, group: str) -> None:
        """The next pass makes claims for everything else that waits for this. What is sold into a placement group is
        for sale outside as well; not the other way round."""
        sold = Shortage(
            capacity_type=attempt.launch.fleet.capacity_type,
            instance_type=launched.instance_type,
            zone=launched.zone,
        )
        scopes = {"", group, group_scope(group, attempt.launch.fleet.partition or "")}
        for shortage in (*(replace(sold, scope=each) for each in scopes), Shortage(capacity_type=sold.capacity_type)):
            await self._offerings.sources.shortages.forget(shortage)

    async def _remember(self, attempt: LaunchAttempt, errors: tuple[FleetError, ...], group: str) -> bool:
        """Keep what ran short, in this scope of a placement group, before anything is planned again (AWS-89). Whether
        there was anything."""
        capacity_type, sources = attempt.launch.fleet.capacity_type, self._offerings.sources
        for error in errors:
            place = {"zone": error.zone, "zone_id": attempt.node_class.zone_ids.get(error.zone, "")}
            labels = {**place, "capacity_type": capacity_type, "reason": error.code}
            count("cloudprovider_instance_launch_failures_total", labels)
        found = shortages_of(errors, capacity_type, group)
        await sources.shortages.remember(found)
        if capacity_type == core.CAPACITY_RESERVED:
            scopes = {self._refused_by(attempt, error) for error in errors} - {""}
            short = [Shortage(capacity_type=core.CAPACITY_RESERVED, scope=each) for each in sorted(scopes)]
            await sources.shortages.remember(short, _RESERVED_SECONDS)
            found.update(short)
        return bool(found)

    def _refused_by(self, attempt: LaunchAttempt, error: FleetError) -> str:
        """The scope in which a reservation is short by that; empty where it is not."""
        group = self._group(attempt.launch, error)
        reservation = None if group is None or _is_of_another_thing(error) else group.terms.reservation_id
        if not reservation:
            return ""
        if not error.code.startswith(_OF_RESERVATIONS):
            return class_scope(reservation, attempt.node_class.uid)
        self._offerings.sources.reservations.exhausted(reservation)
        return reservation

    def _group(self, launch: FrozenLaunch, said: FleetError | FleetInstance) -> LaunchGroup | None:
        """The group that an answer is about: a launch has one for each type and zone (AWS-156). If the answer lacks
        these, the template's id says it; a guess would book another reservation than the one that pays."""
        for group in launch.groups:
            for override in group.overrides:
                if (override.instance_type, launch.places[override.place].zone) == (said.instance_type, said.zone):
                    return group
        if len(launch.groups) == 1:
            return launch.groups[0]
        by_id = {self._templates.id_of(group.template): group for group in launch.groups}
        return by_id.get(said.template) if said.template else None

    async def _instance(self, attempt: LaunchAttempt, launched: FleetInstance) -> Instance:
        launch, sources = attempt.launch, self._offerings.sources
        group = self._group(launch, launched)
        terms = group.terms if group is not None else LaunchTerms(image="", max_pods=0)
        if terms.reservation_id:
            sources.reservations.launched(terms.reservation_id)
        name, zone = launched.instance_type, launched.zone
        placement = await sources.groups.of_class(attempt.node_class)
        facts = InstanceFacts(
            id=launched.id,
            instance_type=name,
            zone=zone,
            zone_id=attempt.node_class.zone_ids.get(zone, ""),
            image=launched.override.get("ImageId") or terms.image,
            capacity_type=launch.fleet.capacity_type,
            tenancy=launch.fleet.tenancy,
            reservation_id=terms.reservation_id,
            reservation_type="capacity-block" if launch.block else "default",
            interruptible=launch.interruptible,
            group_id=placement.id if placement else None,
            partition=launch.fleet.partition,
            partitioned=bool(placement and placement.partitions),
            launched=self._clock(),
            efa=bool(terms.efa or attempt.node_class.spec.network_interfaces),
            tags=instance_tags(attempt),
        )
        self._inventory.launched(facts)
        # Launched all the same where the type is not known; what it is, the next look will say.
        sized = await self._sized.of(facts, attempt.node_class)
        waiting = {core.REGISTRATION_HOOK: names.PARTITION_HOOK} if facts.partitioned and not facts.partition else {}
        return instance_of(facts, sized, {**annotations_of(launch), **waiting})

    def _take_addresses(self, attempt: LaunchAttempt) -> dict[str, int]:
        """Count down as many addresses of each subnet as the smallest of its types may use (AWS-71)."""
        taken: dict[str, int] = {}
        for group in attempt.launch.groups:
            for number in {override.place for override in group.overrides}:
                subnet = attempt.launch.places[number].subnet
                taken[subnet] = min(taken.get(subnet, group.terms.max_pods), group.terms.max_pods)
        for subnet, addresses in taken.items():
            self._offerings.sources.subnets.take(subnet, addresses * attempt.instances)
        return taken


def annotations_of(launch: FrozenLaunch) -> dict[str, str]:
    """What the claim records about its class."""
    return {
        names.HASH: launch.class_hash,
        names.HASH_VERSION: HASH_VERSION,
        **({names.PROFILE_NAME: launch.profile} if launch.profile else {}),
    }


def _is_of_another_thing(error: FleetError) -> bool:
    """Whether the refusal says nothing of the reservation: a full subnet does not, as another may reach it, nor a call
    at a bad moment. Any other closes it to the class that was refused (a full placement group, another platform or
    tenancy, a right that is missing); to all classes only what EC2 says of the reservation itself."""
    return is_passing(error.code) or (error.code == NO_ADDRESSES and error.subnet != "")


def _subnets_used(answer: Json) -> Counter[str]:
    return Counter(str(each.override.get("SubnetId", "")) for each in launched_instances(answer))


def _denied(denied: Denied) -> LaunchRefused:
    """A refused call made nothing."""
    if denied.code == _TOKEN_MISUSED:
        # A bug of ours, or an edited annotation of the claim; another token could launch a second instance.
        raise Refused("ec2:CreateFleet", f"{denied.code}: {denied.message}")
    text = f"Error creating fleet request: {denied.code}: {denied.message}"
    return LaunchRefused(reason=reason_for([(denied.code, denied.message)]), message=text)
