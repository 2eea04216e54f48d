"""The port Cloud over Node objects: prepare, launch, find, terminate, list."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.catalogues import instance_type
from dovetail.adapters.kwok.choosing import choose, ready_class
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
from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.json import Json
from dovetail.model.values.time import format_time
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Conflict, Refused
from dovetail.ports.objects import Nodes
from dovetail.ports.raw_objects import MadeObjects

_TRIES: Final = 5  # a Node that is played changes while it is changed


@dataclass(frozen=True, slots=True, kw_only=True)
class KwokCloudParts:
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
        pools = choose(claim, node_class, self._parts.types, self._parts.shortages.known())
        if not isinstance(pools, tuple):
            return pools
        return Prepared(request=orjson.dumps([list(pool) for pool in pools]).decode())

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
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
        return ready_class(claim, self._parts.classes.get(claim.node_class))

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


def _check_owner(raw: Json, claim: str) -> None:
    """A providerID is only a text in a status: it must name an instance, and the claim's own."""
    meta = raw["metadata"]
    theirs = (meta.get("annotations") or {}).get(own.CLAIM, "")
    if not is_instance(raw):
        raise Refused(f"Node/{meta['name']}", f"it is no instance of this cloud (it lacks {SELECTOR}); it stays")
    if claim and theirs and theirs != claim:
        raise Refused(f"NodeClaim/{claim}", f"status.providerID names Node {meta['name']} of NodeClaim {theirs}")
