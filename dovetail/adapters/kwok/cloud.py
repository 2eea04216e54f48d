"""The port Cloud over Node objects: prepare, launch, find, terminate, list."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.catalogues import instance_type
from dovetail.adapters.kwok.instance_types import OfferingKey, SoldType
from dovetail.adapters.kwok.instances import (
    SELECTOR,
    Purchase,
    has_ended,
    instance_of,
    is_gone,
    is_instance,
    name_of,
    node_name,
    node_of,
    request_hash,
)
from dovetail.adapters.kwok.node_class import KwokClass, KwokClasses, KwokShortages
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.scheduling.requirements import RequirementSet, conflicts, from_expressions, from_labels
from dovetail.model.values.json import Json
from dovetail.model.values.resources import fits, subtract, total
from dovetail.model.values.time import format_time
from dovetail.ports.cloud import NOTHING_SUITS, ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Conflict, Refused
from dovetail.ports.objects import Nodes
from dovetail.ports.raw_objects import MadeObjects

_MOST_POOLS: Final = 60
_TRIES: Final = 5  # a Node that is played changes while it is changed


@dataclass(frozen=True, slots=True, kw_only=True)
class KwokCloudParts:
    """The port's parts."""

    classes: KwokClasses
    types: Sequence[SoldType]
    shortages: KwokShortages
    objects: MadeObjects  # the Nodes
    nodes: Nodes


class KwokCloud:
    def __init__(self, parts: KwokCloudParts, clock: Callable[[], float] = time.time) -> None:
        self._parts, self._clock = parts, clock
        self._types = {each.name: each for each in parts.types}

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        node_class = self._ready_class(claim)
        if isinstance(node_class, ClassNotReady):
            return node_class
        suitable, short = self._suitable(claim, node_class), self._parts.shortages.known()
        if not suitable:
            return NOTHING_SUITS
        found = [each for each in suitable if each[1] not in short]
        if not found:
            return NoCapacity(message="no instance type that the claim allows is available")
        pools = [pool for _, pool in sorted(found)][:_MOST_POOLS]  # cheapest first, then by name: no choice is random
        return Prepared(request=orjson.dumps([list(pool) for pool in pools]).decode())

    async def launch(
        self, claim: NodeClaim, request: str, token: str
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        name = node_name(token)
        raw = await self._parts.objects.read(name)
        if raw is None:
            bought = self._buy(claim, request)
            if not isinstance(bought, Purchase):
                return bought
            made = await self._parts.objects.create(name, node_of(name, bought, self._clock()))
            raw = made or await self._parts.objects.read(name)
        if raw is None:
            raise Conflict(f"Node/{name}", "made and gone in the same moment")
        if (raw["metadata"].get("annotations") or {}).get(own.REQUEST) != request_hash(claim, request):
            raise Refused(f"Node/{name}", "its launch token was used for another request")
        return instance_of(raw, self._clock())

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        if provider_id:
            name = name_of(provider_id)
            raw = await self._parts.objects.read(name) if name else None
            found = [] if raw is None else [raw]
        else:
            found = list(await self._parts.objects.list_labelled(f"{names.CLAIM_UID_TAG}={claim_uid}"))
        return next(iter(self._live(found)), None)

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        name = name_of(provider_id)
        for last in range(1 - _TRIES, 1):
            raw = await self._parts.objects.read(name) if name else None
            if raw is None or is_gone(raw, now := self._clock()):
                return "gone"
            _check_owner(raw, claim)
            if has_ended(raw["metadata"].get("annotations") or {}, now):
                await self._parts.nodes.delete(name, raw["metadata"]["uid"])
                return "gone"
            try:
                await self._parts.objects.patch(raw, {"metadata": {"annotations": {own.ENDS_AT: format_time(now)}}})
                break
            except Conflict:
                if not last:
                    raise
        return "terminating"

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        raise Refused(f"NodeClaim/{claim}", "a machine that does not exist cannot be rebooted")

    async def list_instances(self) -> tuple[Instance, ...]:
        return self._live(await self._parts.objects.list_labelled(SELECTOR))

    def _live(self, raws: Sequence[Json]) -> tuple[Instance, ...]:
        now = self._clock()
        return tuple(instance_of(raw, now) for raw in raws if is_instance(raw) and not is_gone(raw, now))

    def _ready_class(self, claim: NodeClaim) -> KwokClass | ClassNotReady:
        reference = claim.node_class
        found = self._parts.classes.get(reference)
        if found is None or found.state.deleting:
            return ClassNotReady(message=f"{reference.kind} {reference.name} is missing or being deleted")
        if found.state.ready != "True":
            return ClassNotReady(message=f"{reference.kind} {reference.name}: {found.state.message}")
        return found

    def _suitable(self, claim: NodeClaim, node_class: KwokClass) -> list[tuple[float, OfferingKey]]:
        """Every offering that the claim allows and that has room for it."""
        asked, wanted = from_expressions(claim.requirements), total((claim.requests, {"pods": 0}))
        found: list[tuple[float, OfferingKey]] = []
        for sold in self._parts.types:
            sizes = instance_type(sold, node_class)
            if conflicts(from_expressions(sold.requirements), asked):
                continue
            if fits(wanted, subtract(sizes.capacity, sizes.overhead)):
                found += [(price, pool) for pool, price in sold.prices.items() if not conflicts(_place(pool), asked)]
        return found

    def _buy(self, claim: NodeClaim, request: str) -> Purchase | NoCapacity | ClassNotReady:
        """The first of the request's offerings that the cloud still sells; the others are remembered as short."""
        node_class = self._ready_class(claim)
        if isinstance(node_class, ClassNotReady):
            return node_class
        pools = [OfferingKey(*each) for each in orjson.loads(request)]
        for pool in pools:
            sold = self._types.get(pool.instance_type)
            if sold is not None and node_class.sells(pool):
                return Purchase(
                    claim=claim,
                    node_class=node_class,
                    request=request,
                    sold=sold,
                    sizes=instance_type(sold, node_class),
                    pool=pool,
                )
            self._parts.shortages.remember(pool)
        return NoCapacity(message=f"insufficient capacity in all {len(pools)} offerings that were tried")


def _place(pool: OfferingKey) -> RequirementSet:
    return from_labels({names.ZONE: pool.zone, names.CAPACITY_TYPE: pool.capacity_type})


def _check_owner(raw: Json, claim: str) -> None:
    """A providerID is only a text in a status: it must name an instance, and the claim's own."""
    meta = raw["metadata"]
    theirs = (meta.get("annotations") or {}).get(own.CLAIM, "")
    if not is_instance(raw):
        raise Refused(f"Node/{meta['name']}", f"it is no instance of this cloud (it lacks {SELECTOR}); it stays")
    if claim and theirs and theirs != claim:
        raise Refused(f"NodeClaim/{claim}", f"status.providerID names Node {meta['name']} of NodeClaim {theirs}")
