"""The port Cloud over the simulated cloud: prepare, launch, find, terminate, list.

Every call is in the ledger with its token. What a workflow must branch on is returned; a token used for two different
requests is a bug of ours and is Refused.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

import orjson

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.kwok.choosing import choose, ready_class
from dovetail.adapters.kwok.instances import single_values
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud import instances, shortages
from dovetail.adapters.simulator.cloud.catalogue import WorldCatalogue, read_catalogue, sold_in
from dovetail.adapters.simulator.cloud.instances import InstanceRow, LaunchCall
from dovetail.adapters.simulator.cloud.launch_requests import (
    EmbeddedLaunch,
    as_text,
    from_text,
    image_for,
)
from dovetail.adapters.simulator.cloud.node_classes import read_class
from dovetail.adapters.simulator.ledger import Entry, append
from dovetail.adapters.simulator.settings import read_settings
from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import BACK, STABLE, memory_of
from dovetail.model.scheduling.taints import Taint
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Refused

T = TypeVar("T")

_UNREGISTERED = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")


class SimulatedCloud:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        return await self._calls.read(lambda connection: _prepared(connection, claim, self._calls.clock()))

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        try:
            entry = self._entry("launch", key=claim.name, uid=claim.uid, token=token)
            return await self._recorded(entry, lambda c, now: _launched(c, claim, from_text(request), token, now))
        except Rejected as rejected:
            raise Refused(f"cloud:launch {claim.name}", f"{rejected.reason}: {rejected.message}") from None

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        def step(connection: sqlite3.Connection, now: float) -> tuple[Instance | None, str]:
            row = (
                instances.by_provider_id(connection, provider_id)
                if provider_id
                else instances.live_of_claim(connection, claim_uid)
            )
            if row is None or row.state == "terminated":
                return None, "none"
            return instance_of(row, read_catalogue(connection)), row.id

        return await self._recorded(self._entry("find", key=provider_id, uid=claim_uid), step)

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        def step(connection: sqlite3.Connection, now: float) -> tuple[Literal["terminating", "gone"], str]:
            answer = instances.terminate(connection, provider_id, now)
            return answer, answer

        return await self._recorded(self._entry("terminate", key=provider_id), step)

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        def step(connection: sqlite3.Connection, now: float) -> tuple[None, str]:
            word = instances.reboot(connection, provider_id, now)
            if word == "refused":
                raise Rejected(400, "IncorrectInstanceState", f"instance {provider_id} does not run")
            return None, word

        await self._recorded(self._entry("reboot", key=provider_id), step)

    async def list_instances(self) -> tuple[Instance, ...]:
        def step(connection: sqlite3.Connection, now: float) -> tuple[tuple[Instance, ...], str]:
            cluster = read_settings(connection).cluster
            ours = [row for row in instances.every(connection) if row.state != "terminated" and row.cluster == cluster]
            catalogue = read_catalogue(connection)
            return tuple(instance_of(row, catalogue) for row in ours), str(len(ours))

        return await self._recorded(self._entry("list"), step)

    def _entry(self, verb: str, **of: str) -> Entry:
        return Entry(at=0.0, actor=self._calls.actor, operation=f"cloud:{verb}", **of)  # type: ignore[arg-type]

    async def _recorded(self, entry: Entry, step: Callable[[sqlite3.Connection, float], tuple[T, str]]) -> T:
        """One call: its effect and its entry in one transaction. A step returns its result and a word for it."""

        def whole(connection: sqlite3.Connection, now: float) -> T:
            word = "refused"
            try:
                result, word = step(connection, now)
            except Rejected as rejected:
                word = rejected.reason
                raise
            finally:
                append(connection, replace(entry, at=now, outcome=word))
            return result

        return await self._calls.perform(entry.operation, whole)


def instance_of(row: InstanceRow, catalogue: WorldCatalogue) -> Instance:
    """A row in the port's form."""
    kind = catalogue.types[row.instance_type]
    return Instance(
        provider_id=row.provider_id,
        claim_uid=row.claim_uid,
        claim_name=row.claim_name,
        # A repeated launch may answer with an instance that has ended since; the port has no state for that.
        state="terminating" if row.state == "terminated" else row.state,
        launched=row.launched,
        image_id=row.image,
        labels=catalogue.labels_of(row.pool),
        annotations=orjson.loads(row.annotations),
        capacity=kind.capacity,
        allocatable=kind.allocatable,
    )


def _prepared(
    connection: sqlite3.Connection, claim: NodeClaim, now: float
) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
    node_class, catalogue = ready_class(claim, read_class(connection, claim.node_class)), read_catalogue(connection)
    if isinstance(node_class, ClassNotReady):
        return node_class
    sold = sold_in(catalogue, node_class.zones, node_class.families)
    pools = choose(claim, node_class, sold, shortages.known(connection, now), catalogue.place_of)
    if not isinstance(pools, tuple):
        return pools
    image = image_for(claim, node_class)
    request = EmbeddedLaunch(node_class=node_class.name, stamps=node_class.stamps, image=image, pools=pools)
    pin = memory_of(claim.annotations).roll_out
    if pin.how == BACK and not image:
        return LaunchRefused(reason="StableImageGone", message="no image of before the change can be launched")
    is_other = pin.how == STABLE and image not in [each.id for each in pin.images[:1]]
    without = "no image of before the change can be launched" if is_other else ""
    return Prepared(request=as_text(request), without=without)


def _launched(
    connection: sqlite3.Connection, claim: NodeClaim, request: EmbeddedLaunch, token: str, now: float
) -> tuple[Instance | NoCapacity, str]:
    settings = read_settings(connection)
    launched = instances.launch(connection, _call(claim, request, token, settings.cluster), now)
    if launched.refused:
        shortages.remember(connection, launched.refused, now + settings.shortage)
    if launched.row is None:
        message = f"insufficient capacity in all {len(launched.refused)} offerings that were tried"
        return NoCapacity(message=message), "no_capacity"
    return instance_of(launched.row, read_catalogue(connection)), launched.row.id


def _call(claim: NodeClaim, request: EmbeddedLaunch, token: str, cluster: str) -> LaunchCall:
    labels = {**single_values(claim), **claim.labels}
    taints = [fields.taint(t) for t in (_UNREGISTERED, *claim.taints, *claim.startup_taints)]
    return LaunchCall(
        token=token,
        parameters=orjson.dumps([claim.uid, claim.name, as_text(request)]).decode(),
        pools=request.pools,
        cluster=cluster,
        claim_uid=claim.uid,
        claim_name=claim.name,
        image=request.image,
        annotations=orjson.dumps(dict(request.stamps)).decode(),
        user_data=orjson.dumps({"labels": labels, "taints": taints}).decode(),
    )
