"""The port Cloud over the embedded cloud: prepare, launch, find, terminate, list.

Every call is in the ledger with its token. What a workflow must branch on is returned; a token used for two different
requests is a bug of ours and is Refused.
"""

import sqlite3
from collections.abc import Callable
from typing import Literal, TypeVar

import orjson

from dovetail.adapters.kubernetes_json.rendering import fields
from dovetail.adapters.simulator.api_server.rejected import Rejected
from dovetail.adapters.simulator.calls import Calls
from dovetail.adapters.simulator.cloud import instances, shortages
from dovetail.adapters.simulator.cloud.catalogue import Offer
from dovetail.adapters.simulator.cloud.instances import Machine, Order
from dovetail.adapters.simulator.cloud.node_classes import read_class
from dovetail.adapters.simulator.cloud.offers import Shelf, read_shelf
from dovetail.adapters.simulator.cloud.purchases import Purchase, frozen, purchase_for, thawed
from dovetail.adapters.simulator.ledger import Entry, append
from dovetail.adapters.simulator.settings import read_settings
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.taints import Taint
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Refused

T = TypeVar("T")

_UNREGISTERED = Taint(key=names.UNREGISTERED_TAINT, effect="NoExecute")


class EmbeddedCloud:
    """Instances."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        return await self._calls.read(lambda connection: _prepared(connection, claim, self._calls.clock()))

    async def launch(
        self, claim: NodeClaim, request: str, token: str
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        entry = Entry(
            at=0.0, actor=self._calls.actor, operation="cloud:launch", key=claim.name, uid=claim.uid, token=token
        )
        try:
            return await self._recorded(entry, lambda c, now: _launched(c, (claim, thawed(request), token), now))
        except Rejected as rejected:
            raise Refused(f"cloud:launch {claim.name}", f"{rejected.reason}: {rejected.message}") from None

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        def step(connection: sqlite3.Connection, now: float) -> tuple[Instance | None, str]:
            machine = (
                instances.by_provider_id(connection, provider_id)
                if provider_id
                else instances.live_of_claim(connection, claim_uid)
            )
            if machine is None or machine.state == "terminated":
                return None, "none"
            return instance_of(machine, read_shelf(connection)), machine.id

        entry = Entry(at=0.0, actor=self._calls.actor, operation="cloud:find", key=provider_id, uid=claim_uid)
        return await self._recorded(entry, step)

    async def terminate(self, provider_id: str) -> Literal["terminating", "gone"]:
        def step(connection: sqlite3.Connection, now: float) -> tuple[Literal["terminating", "gone"], str]:
            answer = instances.end(connection, provider_id, now)
            return answer, answer

        entry = Entry(at=0.0, actor=self._calls.actor, operation="cloud:terminate", key=provider_id)
        return await self._recorded(entry, step)

    async def list_instances(self) -> tuple[Instance, ...]:
        def step(connection: sqlite3.Connection, now: float) -> tuple[tuple[Instance, ...], str]:
            cluster = read_settings(connection).cluster
            ours = [m for m in instances.every(connection) if m.state != "terminated" and m.cluster == cluster]
            shelf = read_shelf(connection)
            return tuple(instance_of(machine, shelf) for machine in ours), str(len(ours))

        return await self._recorded(Entry(at=0.0, actor=self._calls.actor, operation="cloud:list"), step)

    async def _recorded(self, entry: Entry, step: Callable[[sqlite3.Connection, float], tuple[T, str]]) -> T:
        """One call: its effect and its entry in one transaction. A step answers with its result and a word for it."""

        def whole(connection: sqlite3.Connection, now: float) -> T:
            word = "refused"
            try:
                result, word = step(connection, now)
            except Rejected as rejected:
                word = rejected.reason
                raise
            finally:
                append(connection, _completed(entry, now, word))
            return result

        return await self._calls.perform(entry.operation, whole)


def instance_of(machine: Machine, shelf: Shelf) -> Instance:
    """A row as the port tells it."""
    sold = Offer(price=0.0, instance_type=machine.instance_type, zone=machine.zone, capacity_type=machine.capacity_type)
    kind = shelf.machines[machine.instance_type]
    return Instance(
        provider_id=machine.provider_id,
        claim_uid=machine.claim_uid,
        claim_name=machine.claim_name,
        # An answer to a repeated launch may tell of an instance that has ended: that too is "on its way out".
        state="terminating" if machine.state == "terminated" else machine.state,
        launched=machine.launched,
        image_id=machine.image,
        labels=shelf.labels_of(sold),
        annotations=orjson.loads(machine.annotations),
        capacity=kind.capacity,
        allocatable=kind.allocatable,
    )


def _completed(entry: Entry, now: float, outcome: str) -> Entry:
    return Entry(
        at=now,
        actor=entry.actor,
        operation=entry.operation,
        key=entry.key,
        uid=entry.uid,
        token=entry.token,
        outcome=outcome,
    )


def _prepared(connection: sqlite3.Connection, claim: NodeClaim, now: float) -> Prepared | NoCapacity | ClassNotReady:
    node_class = read_class(connection, claim.node_class)
    if not node_class.state.found or node_class.state.deleting:
        return ClassNotReady(message=f"{claim.node_class.kind} {claim.node_class.name} is missing or being deleted")
    if node_class.state.ready != "True":
        return ClassNotReady(message=f"{claim.node_class.kind} {claim.node_class.name}: {node_class.state.message}")
    purchase = purchase_for(claim, node_class, read_shelf(connection), shortages.known(connection, now))
    if not purchase.pools:
        return NoCapacity(message="no instance type that the claim allows is available")
    return Prepared(request=frozen(purchase))


def _launched(
    connection: sqlite3.Connection, call: tuple[NodeClaim, Purchase, str], now: float
) -> tuple[Instance | NoCapacity, str]:
    claim, purchase, token = call
    settings = read_settings(connection)
    bought = instances.buy(connection, _order(claim, purchase, (token, settings.cluster)), now)
    if bought.refused:
        shortages.remember(connection, bought.refused, now + settings.shortage)
    if bought.machine is None:
        message = f"insufficient capacity in all {len(bought.refused)} offerings that were tried"
        return NoCapacity(message=message), "no_capacity"
    return instance_of(bought.machine, read_shelf(connection)), bought.machine.id


def _order(claim: NodeClaim, purchase: Purchase, call: tuple[str, str]) -> Order:
    token, cluster = call
    labels = {**_single_values(claim), **claim.labels}
    taints = [fields.taint(t) for t in (_UNREGISTERED, *claim.taints, *claim.startup_taints)]
    return Order(
        token=token,
        parameters=orjson.dumps([claim.uid, claim.name, frozen(purchase)]).decode(),
        pools=purchase.pools,
        cluster=cluster,
        claim_uid=claim.uid,
        claim_name=claim.name,
        image=purchase.image,
        annotations=orjson.dumps(dict(purchase.stamps)).decode(),
        user_data=orjson.dumps({"labels": labels, "taints": taints}).decode(),
    )


def _single_values(claim: NodeClaim) -> dict[str, str]:
    """Requirements that leave one value are labels of the node (K-5)."""
    return {e.key: e.values[0] for e in claim.requirements if e.operator == "In" and len(e.values) == 1}
