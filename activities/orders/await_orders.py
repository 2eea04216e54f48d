"""Looks for what is unfinished, and returns only when something must be done.

It looks at everything when an object changes, and once a minute. To learn whether a workflow runs, it describes its id,
which is strongly consistent, and remembers the answer for a minute: until then an owner that was seen running costs
nothing. Workflows are never listed. The owner of a new claim or of a mark is given a second to appear, because the
workflow that created the claim starts it next. Orders that were handed out most recently come last, so orders that
cannot be carried out, however many, hold up no others.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from temporalio import activity

from dovetail.activities.orders.expiries import Expiries
from dovetail.activities.orders.finders import MINUTE, Finder
from dovetail.activities.shared.every_step.heartbeats import report
from dovetail.activities.shared.looks.last_answers import LastAnswer
from dovetail.activities.shared.looks.look import all_due
from dovetail.activities.shared.looks.snapshots import Snapshots
from dovetail.activities.shared.running_workflows import running_type
from dovetail.activities.shared.waits.cluster_changes import ClusterSleep, quiet_after, until_seen
from dovetail.activities.shared.waits.sight import Sight
from dovetail.lifecycle import unfinished
from dovetail.messages.orders import DeleteClaim, FillPool, Order, Orders, OrdersRequest, StartOwner, subject_of
from dovetail.messages.workflow_ids import claim_owner_id, node_owner_id
from dovetail.messages.workflow_types import LAUNCH_NODE, RELEASE_NODE, TERMINATE_NODE
from dovetail.model.objects.pod_rules import is_reschedulable
from dovetail.model.objects.watched_kinds import FLEET, NODES_AND_STANDING_CLAIMS
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.backoff import Backoff

READS = FLEET

RETURN_SECONDS = 3600.0
APPEAR_SECONDS = 1.0  # a missing owner is given this long
QUIET_SECONDS = 0.2
ORDERS_AT_ONCE = 50  # 6 events each: a look returns at most this many
REPEATS = Backoff(first=20.0, longest=900.0)  # until an order that is still needed is handed out once more
OFTEN = 3  # handed out as often as this, it is repeated less and less often: what fails then is for a person to mend


Wanted = tuple[str, str]  # a workflow id, and the type that should run under it ("": any)
Subject = tuple[str, str, str]


@dataclass(slots=True)
class _Memory:
    """What the last looks found; lost with the worker, and found again by the next one. By a clock that nobody sets."""

    running: dict[Wanted, float] = field(default_factory=dict)  # when it was seen running
    missing: dict[Wanted, float] = field(default_factory=dict)  # since when it is missing
    handed: dict[Subject, "_Handed"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Handed:
    """When an order was last handed out, and how often it has been."""

    at: float
    times: int

    @property
    def again(self) -> float:
        """When to hand it out once more, if it is still needed."""
        return self.at + REPEATS.pause(self.times - OFTEN + 1)


class AwaitOrders:
    def __init__(
        self,
        cluster: str,
        snapshots: Snapshots,
        finders: Sequence[Finder],
        now: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = cluster
        self.view, self.catalogues = snapshots.view, snapshots.catalogues
        self.finders = finders
        self.now, self.clock = now, clock
        self.memory = _Memory()
        self.leaving = LastAnswer(NODES_AND_STANDING_CLAIMS, unfinished.leaving_unowned)
        self.deserted = LastAnswer(NODES_AND_STANDING_CLAIMS, unfinished.deserted)
        self.needed = LastAnswer(NODES_AND_STANDING_CLAIMS, self._needed)
        self.expiries = Expiries()

    @activity.defn
    async def await_orders(self, request: OrdersRequest | None) -> Orders:
        """What must be done now; empty after an hour."""
        if request is not None:
            await until_seen(self.view, request.must_see, request.must_see_until, self.now())
        until, sleep = self.clock() + RETURN_SECONDS, ClusterSleep(self.view)
        sight = Sight(("NodeClaim", "Node"))
        while self.clock() < until:
            revision, began = self.view.revision(), time.thread_time()
            snapshot = replace(self.view.snapshot(READS), supported_node_classes=self.catalogues.supported_classes())
            sight.sees(self.leaving.of(snapshot).keys(), snapshot.seen)
            sight.works()
            needed = self.needed.of(snapshot)
            expired, expiry = self.expiries.look(snapshot)
            launching = [o.claim.name for _, of, o in needed if of == LAUNCH_NODE and isinstance(o, StartOwner)]
            due_at_once = [
                *self.deserted.of(snapshot),
                *expired,
                *unfinished.never_initialized(snapshot, launching),
            ]
            busy = time.thread_time() - began
            missing, in_hand = await self._without_owner(needed)
            began = time.thread_time()
            found, again = await self._found(snapshot, [*missing, *due_at_once])
            quiet = quiet_after(busy + time.thread_time() - began, QUIET_SECONDS)
            due = self._due(found)
            if due:
                taken = _with_pods(_together(due[:ORDERS_AT_ONCE]), snapshot)
                return Orders(orders=taken, more=len(due) > ORDERS_AT_ONCE)
            if found:
                sight.answered()
            else:
                sight.rests()
            soonest = min([until, *in_hand, *[self.memory.handed[subject_of(order)].again for order in found]])
            report(f"{len(snapshot.claims)} NodeClaims, nothing unfinished")
            await sleep.until_changed(
                revision, min(soonest - self.clock(), min(again, expiry or again) - self.now()), quiet
            )
        return Orders()

    async def _found(self, snapshot: Snapshot, orders: list[Order]) -> tuple[list[Order], float]:
        """These orders and those of the finders, and when to look again although nothing changes."""
        looks = [await finder.look(snapshot) for finder in self.finders]
        soon = self.now() + (APPEAR_SECONDS if self.memory.missing else MINUTE)
        return [*orders, *all_due(looks)], min([soon, *[look.again for look in looks if look.again is not None]])

    def _due(self, found: list[Order]) -> list[Order]:
        """The orders that were not handed out a moment ago; those that have waited longest come first."""
        now = self.clock()
        by_subject = {subject_of(order): order for order in found}
        known = {
            s: one for s, one in self.memory.handed.items() if now < max(one.at + MINUTE, one.again) or s in by_subject
        }
        due = [s for s in by_subject if s not in known or now >= known[s].again]
        due.sort(key=lambda subject: known[subject].at if subject in known else 0.0)
        handed = {s: _Handed(now, known[s].times + 1 if s in known else 1) for s in due[:ORDERS_AT_ONCE]}
        self.memory.handed = {**known, **handed}
        return [by_subject[subject] for subject in due]

    def _needed(self, snapshot: Snapshot) -> list[tuple[str, str, Order]]:
        """Owners, releases and owners of marks that should run: each id with the workflow's type."""
        cluster = self.cluster
        return [
            *[(claim_owner_id(cluster, o.claim.name), o.workflow_type, o) for o in unfinished.owners(snapshot)],
            *[(node_owner_id(cluster, r.node), RELEASE_NODE, r) for r in unfinished.releases(snapshot)],
            *[(m.owner, "", m) for m in unfinished.marks(snapshot)],
        ]

    async def _without_owner(self, needed: list[tuple[str, str, Order]]) -> tuple[list[Order], list[float]]:
        """The orders for those of them that do not run, and when to ask about those that were just handed out."""
        asked = {(identity, wanted) for identity, wanted, _ in needed}
        self.memory.missing = {key: since for key, since in self.memory.missing.items() if key in asked}
        self.memory.running = {key: seen for key, seen in self.memory.running.items() if key in asked}
        found, in_hand = list[Order](), list[float]()
        for identity, wanted, order in needed:
            handed = self.memory.handed.get(subject_of(order))
            if handed is not None and self.clock() < handed.again:
                in_hand.append(handed.again)  # whether it runs by now changes nothing before
            elif await self._is_missing(identity, wanted):
                found.append(order)
        return found, in_hand

    async def _is_missing(self, identity: str, wanted: str) -> bool:
        """Whether nothing has run under that id for longer than a start takes. A workflow of another type may end
        soon."""
        now, key = self.clock(), (identity, wanted)
        if now - self.memory.running.get(key, float("-inf")) < MINUTE:
            return False
        running = await running_type(activity.client(), identity) if identity else None
        if running and running == (wanted or running):
            self.memory.running[key] = now
            self.memory.missing.pop(key, None)
            return False
        since = self.memory.missing.setdefault(key, now)
        patience = 0.0 if wanted == TERMINATE_NODE else APPEAR_SECONDS
        return now - since >= patience and not running


def _together(orders: list[Order]) -> list[Order]:
    """The numbers of a pool that are due as one order, after the others."""
    fills: dict[str, list[FillPool]] = {}
    for order in orders:
        if isinstance(order, FillPool):
            fills.setdefault(order.request.plan_id, []).append(order)
    return [order for order in orders if not isinstance(order, FillPool)] + [_joined(fill) for fill in fills.values()]


def _joined(fills: list[FillPool]) -> FillPool:
    request = fills[0].request
    indexes = tuple(index for fill in fills for index in fill.request.indexes)
    return replace(fills[0], request=replace(request, proposed=request.proposed * len(indexes), indexes=indexes))


def _with_pods(orders: list[Order], snapshot: Snapshot) -> tuple[Order, ...]:
    """Each deletion with the number of pods that it disturbs (LIF-63)."""
    deleted = {order.claim.name: order for order in orders if isinstance(order, DeleteClaim)}
    nodes = {claim.node_name for name in deleted if (claim := snapshot.claims.get(name)) is not None}
    counts = Counter(
        pod.node_name for pod in snapshot.pods.values() if pod.node_name in nodes and is_reschedulable(pod)
    )
    return tuple(
        replace(order, pods=counts[snapshot.claims[order.claim.name].node_name])
        if isinstance(order, DeleteClaim) and order.claim.name in snapshot.claims
        else order
        for order in orders
    )
