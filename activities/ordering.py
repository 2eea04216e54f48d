"""Looks for what is unfinished, and returns only when something must be done.

Asked by the Caretaker. Looks when an object changes and over everything once a minute. Whether a workflow runs is asked
by describing its id, which is strongly consistent, and remembered for a minute: an owner that was seen running costs
nothing until then. Workflows are never listed, and the owner of a new claim or of a mark is given a second to appear,
because whoever created it starts it next.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from temporalio import activity

from activities.awaiting import running_type
from activities.beating import report
from activities.waking import until_changed
from core.lifecycle import unfinished
from core.lifecycle.unfinished import SoldInstance
from core.model.orders import Order, Orders, TerminateOrphan
from core.model.snapshot import Snapshot
from core.model.workflow_ids import claim_owner_id, node_owner_id
from core.model.workflow_types import RELEASE_NODE, TERMINATE_NODE
from ports.cloud import Catalogues, Cloud
from ports.failures import Failure
from ports.view import ClusterView

_log = logging.getLogger(__name__)

RETURN_SECONDS = 3600.0
MINUTE = 60.0
APPEAR_SECONDS = 1.0  # a missing owner is given this long
QUIET_SECONDS = 0.2
ORDERS_AT_ONCE = 50  # 6 events each: a look returns at most this many


Wish = tuple[str, str]  # a workflow id, and the type that should run under it ("": any)


@dataclass(slots=True)
class _Memory:
    """What the last looks found; lost with the worker, and found again."""

    running: dict[Wish, float] = field(default_factory=dict)  # when it was seen running
    missing: dict[Wish, float] = field(default_factory=dict)  # since when it is missing
    listed: float = 0.0  # when the cloud was listed
    unclaimed: frozenset[str] = frozenset()  # at the last look, whatever their age


class Ordering:
    """The look over everything."""

    def __init__(
        self, cluster: str, view: ClusterView, cloud: Cloud, catalogues: Catalogues, now: Callable[[], float]
    ) -> None:
        self.cluster = cluster
        self.view = view
        self.cloud = cloud
        self.catalogues = catalogues
        self.now = now
        self.memory = _Memory()

    @activity.defn
    async def await_orders(self) -> Orders:
        """What must be done now; empty after an hour."""
        until = self.now() + RETURN_SECONDS
        while self.now() < until:
            revision = self.view.revision()
            snapshot = self._snapshot()
            orders = [*await self._owned(snapshot), *self._due(snapshot), *await self._collected(snapshot)]
            if orders:
                return Orders(orders=tuple(orders[:ORDERS_AT_ONCE]), more=len(orders) > ORDERS_AT_ONCE)
            report(f"{len(snapshot.claims)} NodeClaims, nothing unfinished")
            await until_changed(self.view, revision, min(until, self._next(snapshot)) - self.now(), QUIET_SECONDS)
        return Orders()

    def _snapshot(self) -> Snapshot:
        return replace(self.view.snapshot(), supported_node_classes=self.catalogues.supported_classes())

    def _due(self, snapshot: Snapshot) -> list[Order]:
        """What the objects alone tell."""
        return [*unfinished.deserted(snapshot), *unfinished.expired(snapshot)]

    async def _owned(self, snapshot: Snapshot) -> list[Order]:
        """Owners and releases that do not run, marks whose owner does not."""
        cluster = self.cluster
        wishes: list[tuple[str, str, Order]] = [
            *[(claim_owner_id(cluster, o.claim.name), o.workflow_type, o) for o in unfinished.owners(snapshot)],
            *[(node_owner_id(cluster, r.node), RELEASE_NODE, r) for r in unfinished.releases(snapshot)],
            *[(m.owner, "", m) for m in unfinished.marks(snapshot)],
        ]
        asked = {(identity, wanted) for identity, wanted, _ in wishes}
        self.memory.missing = {key: since for key, since in self.memory.missing.items() if key in asked}
        self.memory.running = {key: seen for key, seen in self.memory.running.items() if key in asked}
        return [order for identity, wanted, order in wishes if await self._is_missing(identity, wanted)]

    async def _is_missing(self, identity: str, wanted: str) -> bool:
        """Whether nothing has run under that id for longer than a starter takes. Another type may be leaving: wait."""
        now, key = self.now(), (identity, wanted)
        if now - self.memory.running.get(key, 0.0) < MINUTE:
            return False
        running = await running_type(activity.client(), identity) if identity else ""
        if running and running == (wanted or running):
            self.memory.running[key] = now
            self.memory.missing.pop(key, None)
            return False
        since = self.memory.missing.setdefault(key, now)
        patience = 0.0 if wanted == TERMINATE_NODE else APPEAR_SECONDS
        return now - since >= patience and not running

    async def _collected(self, snapshot: Snapshot) -> list[Order]:
        """Once a minute, what the cloud's list tells: instances that vanished, instances that nobody owns."""
        if self.now() - self.memory.listed < MINUTE:
            return []
        try:
            sold = [
                SoldInstance(provider_id=i.provider_id, claim_uid=i.claim_uid, launched=i.launched)
                for i in await self.cloud.list_instances()
                if i.state != "terminating"
            ]
        except Failure as failure:
            _log.warning("cannot list instances now: %s", failure)
            self.memory.listed = self.now()
            return []
        self.memory.listed = self.now()
        found = unfinished.orphans(snapshot, sold)
        stopped = unfinished.too_many(len(found), len(sold))
        if stopped:
            words = "%d of %d instances have no NodeClaim; none is collected until a person has looked"
            _log.error(words, len(found), len(sold))
        orders: tuple[TerminateOrphan, ...] = () if stopped else unfinished.collect(found, self.memory.unclaimed)
        self.memory.unclaimed = frozenset(o.provider_id for o in unfinished.unclaimed(snapshot, sold))
        return [*unfinished.vanished(snapshot, sold), *orders]

    def _next(self, snapshot: Snapshot) -> float:
        """When to look although nothing changes."""
        soon = self.now() + APPEAR_SECONDS if self.memory.missing else self.now() + MINUTE
        expiry = unfinished.next_expiry(snapshot)
        listing = self.memory.listed + MINUTE
        return min(soon, listing, expiry if expiry is not None else soon)
