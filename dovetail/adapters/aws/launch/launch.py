"""Carries a frozen purchase out: templates, one fleet, one instance (W-85, W-88 to W-91, W-181).

The second half of a launch, repeated as often as it takes under one token. The trap avoided: a failure that says
nothing certain (silence, an internal error) taken for "nothing was made"; it is raised, and the same call is made
again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, Shelves
from dovetail.adapters.aws.catalogue.shortages import Shortage
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.failures import TEMPLATE_MISSING, Denied
from dovetail.adapters.aws.instances.instance import Facts, instance_of
from dovetail.adapters.aws.launch.fleet_answers import (
    UNFULFILLABLE,
    FleetError,
    outcome,
    read_errors,
    reason_for,
    shortages_of,
)
from dovetail.adapters.aws.launch.frozen_launch import Group, Purchase
from dovetail.adapters.aws.launch.launch_template_terms import TemplateMaker, Terms
from dovetail.adapters.aws.launch.launch_templates import Templates
from dovetail.adapters.aws.launch.template_data import Template
from dovetail.adapters.aws.meters import count
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.tags import tag_specification
from dovetail.adapters.aws.user_data.bootstrap import BadUserData
from dovetail.adapters.kubernetes_json.parsing.class_hashes import (
    EC2_NODE_CLASS_HASH_VERSION as HASH_VERSION,
)
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.ports.cloud import Instance, LaunchRefused, NoCapacity
from dovetail.ports.failures import Refused

Json = dict[str, Any]

_RESERVED_SECONDS: Final = 60.0  # a full reservation is looked at again with the next description
_TOKEN_MISUSED: Final = "IdempotentParameterMismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One launch."""

    claim: NodeClaim
    node_class: NodeClass
    purchase: Purchase
    token: str


class Buying:
    """Buys."""

    def __init__(
        self,
        calls: Calls,
        shelves: Shelves,
        cluster: Cluster,
        templates: Templates,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls, self._shelves, self._cluster, self._clock = calls, shelves, cluster, clock
        self._templates = templates

    async def buy(self, order: Order) -> Instance | NoCapacity | LaunchRefused:
        """The instance, or why there is none. A template that has vanished is made again, once."""
        refused = await self._ensure_templates(order)
        if refused is not None:
            return refused
        answer = await self._request(order)
        if isinstance(answer, Denied) and answer.code == TEMPLATE_MISSING:
            for group in order.purchase.groups:
                self._templates.forget(group.template)
            refused = await self._ensure_templates(order)
            if refused is not None:
                return refused
            answer = await self._request(order)
        return _denied(answer) if isinstance(answer, Denied) else await self._concluded(order, answer)

    async def _request(self, order: Order) -> Json | Denied:
        taken, used = self._take_addresses(order), ""
        try:
            answer = await self._calls.attempt("ec2", "CreateFleet", **fleet_request(order))
            used = "" if isinstance(answer, Denied) else _subnet_used(answer)
            return answer
        finally:
            self._give_back(taken, used)

    async def _ensure_templates(self, order: Order) -> LaunchRefused | None:
        for group in order.purchase.groups:
            if await self._templates.exists(group.template):
                continue
            try:
                template = await self._made_again(order, group)
            except BadUserData as error:
                return LaunchRefused(reason="LaunchFailed", message=str(error))
            if template.name != group.template:
                # The class has changed since the request was frozen, and nobody had made its template: nothing was
                # bought with it. Another generation asks for what the class says now.
                return LaunchRefused(reason="LaunchTemplateNotFound", message="the node class has changed meanwhile")
            denied = await self._templates.make(template)
            if denied is not None:
                text = f"creating instance, getting launch template configs, {denied.code}: {denied.message}"
                return LaunchRefused(reason=reason_for([denied.code]), message=text)
        return None

    async def _made_again(self, order: Order, group: Group) -> Template:
        purchase, settings = order.purchase, self._shelves.sources.settings
        facts = await self._cluster.for_launch(with_cidr=order.node_class.family == "AL2023")
        maker = TemplateMaker(
            settings=settings,
            region=self._calls.region,
            facts=facts,
            node_class=order.node_class,
            claim=order.claim,
            tags=dict(purchase.tags),
        )
        placement = await self._shelves.sources.groups.of_class(order.node_class)
        return maker.template(
            Terms(
                capacity_type=purchase.capacity_type,
                tenancy=purchase.tenancy,
                image=group.image,
                max_pods=group.max_pods,
                efa=group.efa,
                reservation_id=group.reservation_id,
                market=group.market,
                group_id=placement.id if placement else "",
                partition=purchase.partition,
                reserved=group.reserved,
            )
        )

    async def _concluded(self, order: Order, answer: Json) -> Instance | NoCapacity | LaunchRefused:
        errors = read_errors(answer)
        await self._remember(order, errors)
        launched = _launched(answer)
        if launched is None:
            return outcome(errors)
        return await self._instance(order, launched)

    async def _remember(self, order: Order, errors: tuple[FleetError, ...]) -> None:
        """What ran short; kept before anybody may plan again (W-89)."""
        kind, sources = order.purchase.capacity_type, self._shelves.sources
        for error in errors:
            place = {"zone": error.zone, "zone_id": order.node_class.zone_ids.get(error.zone, "")}
            labels = {**place, "capacity_type": kind, "reason": error.code}
            count("cloudprovider_instance_launch_failures_total", labels)
        await sources.shortages.remember(shortages_of(errors, kind))
        if kind == core.CAPACITY_RESERVED:
            by_template = {group.template: group.reservation_id for group in order.purchase.groups}
            empty = {by_template.get(error.template, "") for error in errors if error.code in UNFULFILLABLE} - {""}
            for each in empty:
                sources.reservations.exhausted(each)
            marks = [Shortage(capacity_type=core.CAPACITY_RESERVED, scope=each) for each in sorted(empty)]
            await sources.shortages.remember(marks, _RESERVED_SECONDS)

    async def _instance(self, order: Order, launched: tuple[str, Json, str]) -> Instance:
        identity, override, template = launched
        purchase, sources = order.purchase, self._shelves.sources
        group = next((g for g in purchase.groups if g.template == template), purchase.groups[0])
        if group.reservation_id:
            sources.reservations.launched(group.reservation_id)
        name, zone = override.get("InstanceType", ""), override.get("AvailabilityZone", "")
        placement = await sources.groups.of_class(order.node_class)
        facts = Facts(
            id=identity,
            instance_type=name,
            zone=zone,
            zone_id=order.node_class.zone_ids.get(zone, ""),
            image=override.get("ImageId") or group.image,
            capacity_type=purchase.capacity_type,
            tenancy=purchase.tenancy,
            reservation_id=group.reservation_id,
            reservation_type="capacity-block" if purchase.block else "default",
            interruptible=purchase.interruptible,
            group_id=placement.id if placement else "",
            partition=purchase.partition,
            partitioned=bool(placement and placement.partitions),
            launched=self._clock(),
            efa=bool(group.efa or order.node_class.spec.network_interfaces),
            tags=instance_tags(order),
        )
        try:
            form = (await self._shelves.forms(order.node_class)).get(name)
        except NoTypes:
            form = None  # bought all the same; what its type is, the next look will say
        waiting = {core.REGISTRATION_HOOK: names.PARTITION_HOOK} if facts.partitioned and not facts.partition else {}
        return instance_of(facts, form, {**annotations_of(purchase), **waiting})

    def _take_addresses(self, order: Order) -> dict[str, int]:
        """W-71: as many as the smallest type on offer in a subnet may use."""
        taken: dict[str, int] = {}
        for group in order.purchase.groups:
            for number in {number for _, number, _ in group.offers}:
                subnet = order.purchase.places[number][0]
                taken[subnet] = min(taken.get(subnet, group.max_pods), group.max_pods)
        for subnet, addresses in taken.items():
            self._shelves.sources.subnets.take(subnet, addresses)
        return taken

    def _give_back(self, taken: dict[str, int], used: str) -> None:
        for subnet, addresses in taken.items():
            if subnet != used:
                self._shelves.sources.subnets.take(subnet, -addresses)


def instance_tags(order: Order) -> dict[str, str]:
    """The class's tags and whose instance it is (W-183)."""
    return {
        **order.purchase.tags,
        names.CLAIM_TAG: order.claim.name,
        core.CLAIM_UID_TAG: order.claim.uid,
    }


def annotations_of(purchase: Purchase) -> dict[str, str]:
    """What the claim is to remember of its class."""
    return {
        names.HASH: purchase.class_hash,
        names.HASH_VERSION: HASH_VERSION,
        **({names.PROFILE_NAME: purchase.profile} if purchase.profile else {}),
    }


def fleet_request(order: Order) -> Json:
    """W-88: the same for the same purchase, byte for byte."""
    purchase = order.purchase
    target = "on-demand"
    if purchase.capacity_type == core.CAPACITY_SPOT:
        target = "spot"
    elif purchase.block:
        target = "capacity-block"
    elif purchase.interruptible:
        target = "reserved-capacity"
    request: Json = {
        "Type": "instant",
        "ClientToken": order.token,
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": target},
        "LaunchTemplateConfigs": [_config(purchase, group) for group in purchase.groups],
        "TagSpecifications": [
            tag_specification("instance", instance_tags(order)),
            tag_specification("volume", purchase.tags),
            tag_specification("fleet", purchase.tags),
        ],
    }
    if target == "spot":
        strategy = "capacity-optimized-prioritized" if purchase.overlaid else "price-capacity-optimized"
        request["SpotOptions"] = {"AllocationStrategy": strategy}
    elif target == "reserved-capacity":
        request["ReservedCapacityOptions"] = {"ReservationTypes": ["interruptible-capacity-reservation"]}
    elif target == "on-demand":
        strategy = "prioritized" if purchase.overlaid else "lowest-price"
        request["OnDemandOptions"] = {"AllocationStrategy": strategy}
    if purchase.context:
        request["Context"] = purchase.context
    return request


def _config(purchase: Purchase, group: Group) -> Json:
    return {
        "LaunchTemplateSpecification": {"LaunchTemplateName": group.template, "Version": "$Latest"},
        "Overrides": [
            {
                "InstanceType": name,
                "SubnetId": purchase.places[number][0],
                "AvailabilityZone": purchase.places[number][1],
                "ImageId": group.image,
                "Priority": price,
            }
            for name, number, price in group.offers
        ],
    }


def _launched(answer: Json) -> tuple[str, Json, str] | None:
    """(instance id, override, template name) of the one instance."""
    for entry in answer.get("Instances") or ():
        said = entry.get("LaunchTemplateAndOverrides") or {}
        for identity in entry.get("InstanceIds") or ():
            override = dict(said.get("Overrides") or {})
            override.setdefault("InstanceType", entry.get("InstanceType", ""))
            return identity, override, (said.get("LaunchTemplateSpecification") or {}).get("LaunchTemplateName", "")
    return None


def _subnet_used(answer: Json) -> str:
    launched = _launched(answer)
    return "" if launched is None else str(launched[1].get("SubnetId", ""))


def _denied(denied: Denied) -> NoCapacity | LaunchRefused:
    """A refused call made nothing."""
    if denied.code == _TOKEN_MISUSED:
        # A bug of ours, or someone edited the claim's annotation; trying under another token could buy a second.
        raise Refused("ec2:CreateFleet", f"{denied.code}: {denied.message}")
    text = f"Error creating fleet request: {denied.code}: {denied.message}"
    return LaunchRefused(reason=reason_for([denied.code]), message=text)
