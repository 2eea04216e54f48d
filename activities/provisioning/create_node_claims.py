"""Creates the NodeClaims of a plan.

The names derive from the plan's id, so a retry makes the same claims; if another plan has made a claim of that name,
the node is refused. A pool that is over its limits already gets no more claims (LIF-3, PLC-11). If the API server
refuses a claim, by its own rules or an admission policy's, only that claim fails: the others are made, the outcome
names it, and a notice on its pool says why. Each claim gets its LaunchNode as soon as it exists.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from temporalio import activity

from dovetail.activities.disruption.returned_moves import ReturnedMoves
from dovetail.activities.shared.looks.live_pauses import LivePauses
from dovetail.activities.shared.looks.shared_reads import Reads
from dovetail.activities.shared.owner_starts import OwnerStarts
from dovetail.lifecycle.unfinished import reference
from dovetail.messages.outcomes import CreateOutcome
from dovetail.messages.plans import ProposedNode, name_of, plan_label
from dovetail.messages.requests import CreateRequest
from dovetail.messages.states import MOST_REFUSED_PODS
from dovetail.messages.workflow_types import LAUNCH_NODE
from dovetail.messages.writes import claim_write
from dovetail.model import before_0_2, names
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import NOTHING, Pin, memory_of, with_memory
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.pods import Expression, Owner
from dovetail.model.pools import NodePool
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.model.scheduling.requirements import allows_no_more, from_expressions, from_labels
from dovetail.model.values.resources import NODES
from dovetail.notices.claim_refusals import claim_refused
from dovetail.notices.disruptions import replacing
from dovetail.notices.notice import Notice
from dovetail.ports.failures import Permanent
from dovetail.ports.objects import NewClaim, NodeClaims, Notices
from dovetail.rules.brake.unused_launches import stop_of
from dovetail.rules.pause.pauses import holding
from dovetail.telemetry.log import arrivals
from dovetail.telemetry.metrics.karpenters.lifecycle import claim_created, is_first_attempt

# What planning writes on a claim beside its template's annotations. Anything else would be a stranger's, as a launch
# request, which would launch anything, or a word that keeps the node.
PLANNED: Final = frozenset(
    {
        names.NODE_POOL_HASH,
        names.NODE_POOL_HASH_VERSION,
        names.MIN_VALUES_RELAXED,
        names.DEVICE_DRIVERS,
        names.PRICE_OVERLAY,
        names.CAPACITY_OVERLAY,
        *before_0_2.PLANNED,
    }
)

# Requests to the API server at once: more would only wait in its queue.
AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTies:
    """What may forbid a creation, what it starts, and who remembers it."""

    pauses: LivePauses
    owners: OwnerStarts
    returned: ReturnedMoves


class CreateNodeClaims:
    """The step that turns proposed nodes into claims."""

    def __init__(
        self,
        claims: NodeClaims,
        pools: Reads[NodePool | None],
        notices: Notices,
        now: Callable[[], float],
        ties: CreateTies,
    ) -> None:
        self.claims = claims
        self.pools = pools
        self.notices = notices
        self.now = now
        self.pauses, self.owners, self.returned = ties.pauses, ties.owners, ties.returned
        self.slots = asyncio.Semaphore(AT_ONCE)

    @activity.defn
    async def create_node_claims(self, request: CreateRequest) -> CreateOutcome:
        """Create all of them side by side; one that fails does not stop the others (PLC-11)."""
        names_of_pools = sorted({p.pool for p in request.proposed})
        pools = dict(zip(names_of_pools, await asyncio.gather(*map(self.pools.read, names_of_pools)), strict=True))
        held = await self._held(request, pools)
        pins = await self.pauses.pins(names_of_pools, request.reason)
        results = await asyncio.gather(
            *[self._create(request, index, held, pins) for index in range(len(request.proposed))]
        )
        made = [r for r in results if isinstance(r, NodeClaim)]
        if request.reason == "provisioned":
            await self.returned.launched(
                [
                    pool
                    for one, claim in zip(request.proposed, results, strict=True)
                    if isinstance(claim, NodeClaim) and _is_new(claim) and (pool := pools[one.pool]) is not None
                ]
            )
        return CreateOutcome(
            claims=tuple(reference(claim) for claim in made),
            refused=tuple((r.name, r.why) for r in results if isinstance(r, _Refusal)),
            writes=tuple(claim_write(c) for c in made),
            refused_pods=_pods_of(request, [r for r in results if isinstance(r, _Refusal)]),
            owned=True,
        )

    async def _held(self, request: CreateRequest, pools: Mapping[str, NodePool | None]) -> tuple[str | None, ...]:
        """For each proposed node, why no node may be made for its pool now; None if one may."""
        general = await self.pauses.of_all()
        others: Mapping[str, str] = {}
        if request.basis is not None and request.reason == "drifted":
            others = await self.pauses.other_targets(pools, request.basis)
        return tuple(
            [
                _why_not(one, pools[one.pool])
                or others.get(one.pool)
                or _why_foreign(request, one, pools[one.pool])
                or self._paused(general, pools[one.pool])
                for one in request.proposed
            ]
        )

    def _paused(self, general: tuple[Pause, ...], pool: NodePool | None) -> str | None:
        own = self.pauses.in_pool(pool)
        found = holding((*general, own), Activity.LAUNCHES)
        return found.announces(Activity.LAUNCHES) if found is not None else None

    async def _create(
        self, request: CreateRequest, index: int, held: Sequence[str | None], pins: Mapping[str, Pin | None]
    ) -> "NodeClaim | _Refusal":
        proposed = request.proposed[index]
        name = name_of(proposed, request.plan_id, request.index(index))
        why_not = held[index] or await self._why_too_old(request, name)
        if why_not is not None:
            return _Refusal(name, why_not, index)
        async with self.slots:
            try:
                claim = await self.claims.create(new_claim(request, index, pins.get(proposed.pool)))
            except Permanent as refusal:
                await self.notices.publish(claim_refused(proposed.pool, proposed.pool_uid, str(refusal)))
                return _Refusal(name, str(refusal), index, by_server=True)
            await self.owners.try_to_start(LAUNCH_NODE, reference(claim))
        if _is_new(claim):
            claim_created(claim, request.reason)
            arrivals.created(claim, request.reason, request.type_lists[proposed.type_list])
        await self._nominate(proposed, claim)
        await self.notices.publish(*replacing(claim, request.reason))
        return claim

    async def _why_too_old(self, request: CreateRequest, name: str) -> str | None:
        """Why a plan that is too old is not begun; what an earlier attempt began is finished."""
        why_not = request.seen.why_too_old(self.now()) if request.seen else None
        return why_not if why_not is not None and await self.claims.read(name) is None else None

    async def _nominate(self, proposed: ProposedNode, claim: NodeClaim) -> None:
        """PLC-225: a notice for each pod that says where it is expected to run."""
        await self.notices.publish(
            *[
                Notice(
                    kind="Pod",
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    reason="Nominated",
                    message=f"Pod should schedule on: nodeclaim/{claim.name}",
                )
                for pod in proposed.pods
            ]
        )


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A claim that was not created. `by_server`: the API server refused it; otherwise the plan is no longer right."""

    name: str
    why: str
    index: int
    by_server: bool = False


def _pods_of(request: CreateRequest, refusals: Iterable[_Refusal]) -> tuple[str, ...]:
    """The pods whose claims the API server refused."""
    refused = [request.proposed[each.index] for each in refusals if each.by_server]
    return tuple(sorted({pod.uid for proposed in refused for pod in proposed.pods}))[:MOST_REFUSED_PODS]


def _is_new(claim: NodeClaim) -> bool:
    """Whether this attempt made it. A retry finds it made, and counts nothing rather than count twice."""
    return not claim.conditions and is_first_attempt()


def _why_not(proposed: ProposedNode, pool: NodePool | None) -> str | None:
    """Why nothing may be added to the pool now; None where it may."""
    if pool is None or pool.uid != proposed.pool_uid:
        return f"NodePool {proposed.pool} is gone"
    if pool.deleting_since is not None:
        return f"NodePool {proposed.pool} is being deleted"
    if (stop := stop_of(pool)) is not None and not memory_of(dict(proposed.annotations)).asks_again:
        return f"launches are stopped for NodePool {proposed.pool}: {stop.why}"
    usage = pool.usage or {}
    for resource, limit in sorted((pool.limits or {}).items()):
        if usage.get(resource, 0) > limit and resource != NODES:
            return f"NodePool {proposed.pool} is over its limit of {resource}"
    return None


def _why_foreign(request: CreateRequest, proposed: ProposedNode, pool: NodePool | None) -> str | None:
    """Why the pool as it is now would not make such a node: it has changed since the plan, or no plan of ours asks."""
    if pool is None:
        return None
    labels, template = dict(proposed.labels), pool.template
    types = request.type_lists[proposed.type_list]
    named = (Expression(key=names.INSTANCE_TYPE, operator="In", values=types),) if types else ()
    asked, allowed = from_expressions((*proposed.requirements, *named)), from_expressions(template.requirements)
    fixed = pool.node_labels
    chosen = {k for k in labels.keys() - fixed.keys() if k in allowed or (k in asked and asked[k].complement)}
    comparisons = (
        ("nodeClassRef", proposed.node_class, template.node_class),
        ("labels", {k: v for k, v in labels.items() if k not in chosen}, fixed),
        ("annotations", _unplanned(dict(proposed.annotations)), _unplanned(template.annotations)),
        ("taints", proposed.taints, template.taints),
        ("startupTaints", proposed.startup_taints, template.startup_taints),
        ("expireAfter", proposed.expire_after, template.expire_after),
        ("terminationGracePeriod", proposed.termination_grace, template.termination_grace),
    )
    odd = [field for field, has, wanted in comparisons if has != wanted]
    if odd:
        return f"NodePool {pool.name} makes no such node: its template says otherwise of {', '.join(odd)}"
    if not allows_no_more({**from_labels(labels), **asked}, allowed):
        return f"NodePool {pool.name} allows less than the node asks for"
    return None


def _unplanned(annotations: Mapping[str, str]) -> dict[str, str]:
    left = {key: value for key, value in annotations.items() if key not in PLANNED}
    planned = replace(memory_of(annotations), asks_again=False, keeps_places=False, moved_from=())
    return left if planned != NOTHING else {key: value for key, value in left.items() if key != names.REMEMBERED}


def new_claim(request: CreateRequest, index: int, pin: Pin | None = None) -> NewClaim:
    """The claim that stands for a proposed node, finalizer included (LIF-7: before anything is launched)."""
    proposed = request.proposed[index]
    types = Expression(
        key=names.INSTANCE_TYPE,
        operator="In",
        values=request.type_lists[proposed.type_list],
        min_values=proposed.min_types,
    )
    reason, given = DisruptionReason.of_label(request.reason), dict(proposed.annotations)
    made_for = {"replacement_for": str(reason)} if reason is not None else {}
    annotations = {
        **with_memory(given, **made_for, **({"roll_out": pin} if pin is not None else {})),
        names.PLAN: plan_label(request.plan_id, request.index(index)),
        names.PLANNED_PODS: ",".join(sorted(pod.uid for pod in proposed.pods)),
    }
    if proposed.buffers:
        annotations[names.PLANNED_BUFFERS] = ",".join(f"{uid}={count}" for uid, count in proposed.buffers)
    return NewClaim(
        name=name_of(proposed, request.plan_id, request.index(index)),
        labels=dict(proposed.labels),
        annotations=annotations,
        finalizers=(names.TERMINATION_FINALIZER,),
        owner=Owner(api_version="karpenter.sh/v1", kind="NodePool", name=proposed.pool, uid=proposed.pool_uid),
        node_class=proposed.node_class,
        requirements=(*proposed.requirements, types) if types.values else proposed.requirements,
        requests=dict(proposed.requests),
        taints=proposed.taints,
        startup_taints=proposed.startup_taints,
        expire_after=proposed.expire_after,
        termination_grace=proposed.termination_grace,
    )
