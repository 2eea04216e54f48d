"""Finds, by dry runs, the pods for which the API server accepts no NodeClaim, so that pods planned beside them get
theirs.

A webhook, a policy or a newer definition refuses a claim as a whole, with every pod that was planned onto it. A dry run
of a claim without any pods shows whether the NodePool itself is refused; then other pools take its pods, as in a
shortage. Otherwise the claim's pods are planned apart, half by half, until each refused pod stands alone: it gets no
new node of that pool, nor does a pod that requests the same. Each refusal is tested again after 10 s, then less often,
at last once a minute. The Scheduler's state passes refusals on to other workers and to the commands that explain.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.activities.provisioning.create_node_claims import new_claim
from dovetail.messages.plans import ClaimRefusal, ProposedNode, ProvisioningPlan
from dovetail.messages.requests import CreateRequest, ProvisioningRequest
from dovetail.messages.type_lists import TypeLists
from dovetail.model import names
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.values.backoff import Backoff
from dovetail.model.values.quoting import one_line
from dovetail.notices.claim_refusals import refused_words
from dovetail.ports.failures import Permanent
from dovetail.ports.objects import NodeClaims

PAUSES: Final = Backoff(first=10.0, longest=60.0)
MOST_REMEMBERED: Final = 200  # pods with their refusals, 600 bytes each where all differ
MOST_ASKS: Final = 64  # in one pass; what is not divided by then stays together until it is asked again

Trial = Callable[[frozenset[str]], Awaitable[ProvisioningPlan]]  # a plan as if these pods alone were pending
_Part = tuple[tuple[str, ...], str]  # pods of one claim, and why it was refused


@dataclass(frozen=True, slots=True)
class Asks:
    """What is asked about: the pending pods by UID, the NodePools, and what would be planned for some pods alone."""

    pending: Mapping[str, Pod]
    pools: Mapping[str, NodePool]
    trial: Trial

    def demand(self, uid: str) -> object:
        """What a pod requests; None once it is not pending any more."""
        return _demand(self.pending[uid]) if uid in self.pending else None


@dataclass(slots=True)
class RefusedClaims:
    """The refusals that this worker knows."""

    claims: NodeClaims
    now: Callable[[], float]
    pods: frozenset[str] = frozenset()  # whose claims were refused when they were last asked for
    pools: dict[str, str] = field(default_factory=dict)  # pool -> why it gets no claim for any pod
    waiting: dict[str, str] = field(default_factory=dict)  # pod -> such a pool
    alone: dict[str, dict[str, str]] = field(default_factory=dict)  # pod -> pool -> why it gets none for this pod
    pause: float = PAUSES.first
    again: float = 0.0
    rests_until: float = 0.0  # a claim was refused that its dry run had let through: nothing doubtful goes before
    _passed: set[str] = field(default_factory=set)
    _part: ProvisioningPlan | None = None  # of a claim that is refused whole, and of which no pod is refused alone
    _asks: int = 0

    def begin(self, request: ProvisioningRequest) -> frozenset[str]:
        """Take over what the Scheduler remembers. Returns the pods that may be tried at once."""
        if not self.pools and not self.alone:
            for each in request.claim_refusals:
                for uid in () if each.whole else each.pods:
                    self.alone.setdefault(uid, {})[each.pool] = each.why
        asked, self.pods = self.pods, frozenset(request.refused_pods)
        if self.pods & self._passed:
            self.rests_until = self.now() + self.pause
            self.pause = PAUSES.after(self.pause)
        self._passed.clear()
        return self.pods - asked if self.now() >= self.rests_until else frozenset()

    def held(self, pending: Mapping[str, Pod]) -> dict[str, str]:
        """Why no node is made for a pod, by UID. A pod that asks for the same as a refused pod is refused with it."""
        self.alone = {uid: why for uid, why in self.alone.items() if uid in pending}
        self.waiting = {uid: pool for uid, pool in self.waiting.items() if uid in pending}
        if not self.alone:
            return {}
        known = {_demand(pending[uid]): why for uid, why in self.alone.items()}
        for uid, pod in pending.items():
            if uid not in self.alone and (why := known.get(_demand(pod))):
                self.alone[uid] = why
        return {uid: refused_words(why) for uid, why in self.alone.items()}

    def remembered(self) -> tuple[ClaimRefusal, ...]:
        found: dict[tuple[str, str], list[str]] = {}
        for uid in sorted(self.alone)[:MOST_REMEMBERED]:
            for pool, why in self.alone[uid].items():
                found.setdefault((pool, why), []).append(uid)
        whole: dict[str, list[str]] = {}
        for uid in sorted(self.waiting)[:MOST_REMEMBERED]:
            whole.setdefault(self.waiting[uid], []).append(uid)
        return (
            *(ClaimRefusal(pool=p, why=why, pods=tuple(pods)) for (p, why), pods in sorted(found.items())),
            *(
                ClaimRefusal(pool=p, why=self.pools[p], pods=tuple(pods), whole=True)
                for p, pods in sorted(whole.items())
                if p in self.pools
            ),
        )

    async def ask_again(self, asks: Asks) -> None:
        """Test, after a pause, whether what was refused still is. One pod is tested for all that request the same."""
        self._asks = 0
        if not self.count():
            self.pause, self.again = PAUSES.first, 0.0
        if self.now() < self.again or not self.count():
            return
        self.pools.clear()
        self.pause = PAUSES.after(self.pause)
        self.again = self.now() + self.pause
        alike: dict[object, list[str]] = {}
        for uid in self.alone:
            alike.setdefault(asks.demand(uid), []).append(uid)
        for uids in alike.values():
            if self._asks >= MOST_ASKS:
                break
            plan = await asks.trial(frozenset(uids[:1]))
            refused = await self._refused_parts(plan, uids[:1])
            for uid in uids:
                why = self.alone.pop(uid)  # and put at the end: others come first the next time
                if refused or not plan.proposed:
                    self.alone[uid] = why

    async def look(self, plan: ProvisioningPlan, asks: Asks) -> bool:
        """Test the doubtful claims of a plan; answers whether a refusal was found that was not known."""
        known = self.count()
        self._part = None
        for one in plan.proposed if self.now() >= self.rests_until else ():
            uids = tuple(pod.uid for pod in one.pods)
            if not self._is_doubtful(one):
                continue
            why = self.pools.get(one.pool, "") or await self._refusal(plan.type_lists, one)
            if not why:
                self._passed.update(uids)
                continue
            self._passed.difference_update(uids)
            if self.now() >= self.again:
                self.again = self.now() + self.pause
            if one.pool not in self.pools and await self._takes_none(one, asks.pools.get(one.pool)):
                self.pools[one.pool] = why
            if one.pool in self.pools:
                self.waiting.update(dict.fromkeys(uids, one.pool))
                continue
            for uid, said in (await self._divided((uids, why), asks)).items():
                self.alone[uid] = {**self.alone.get(uid, {}), one.pool: said}
        return self.count() > known

    def count(self) -> int:
        return len(self.pools) + sum(map(len, self.alone.values()))

    async def _takes_none(self, one: ProposedNode, pool: NodePool | None) -> bool:
        """Whether even a claim without any pods is refused for that pool."""
        if pool is None:
            return True
        bare = replace(
            one,
            requirements=pool.template.requirements,
            type_list=0,
            min_types=None,
            labels=tuple(sorted({names.NODE_POOL: pool.name, **pool.template.labels}.items())),
            requests=(),
            pods=(),
            buffers=(),
        )
        return bool(await self._refusal(((),), bare))

    def without_doubtful(self, plan: ProvisioningPlan) -> ProvisioningPlan:
        """The plan without claims that would be refused. Where nothing else is left, a part of one that passes."""
        kept = [n for n in plan.proposed if not self._is_doubtful(n) or self._passed.issuperset(p.uid for p in n.pods)]
        return replace(plan, proposed=tuple(kept)) if kept or self._part is None else self._part

    def groups(self, held: Mapping[str, str]) -> list[tuple[dict[str, str], dict[str, str]]]:
        """The stopped pools and held pods with which the remaining pools are tried, one group after the other: pods by
        the pools that refuse them, first the pods that only refusals keep from a node."""
        found: dict[frozenset[str], dict[str, str]] = {frozenset(): {}} if self.pools else {}
        for why in self.alone.values():
            found.setdefault(frozenset(why), why)
        return [
            (
                {**why, **self.pools},
                {uid: says for uid, says in held.items() if not pools or frozenset(self.alone[uid]) != pools},
            )
            for pools, why in found.items()
        ]

    def _is_doubtful(self, proposed: ProposedNode) -> bool:
        return any(pod.uid in self.pods or pod.uid in self.alone for pod in proposed.pods)

    async def _divided(self, whole: _Part, asks: Asks) -> dict[str, str]:
        """The pods because of which the claim is refused, and why. All of its pods, if none of them can be planned
        apart."""
        found: dict[str, str] = {}
        parts = [whole]
        self._part = None
        while parts:
            uids, why = parts.pop()
            if len(uids) == 1 or self._asks >= MOST_ASKS:
                found.update(dict.fromkeys(uids, why))
                continue
            demands = {uid: asks.demand(uid) for uid in uids}
            alike = len(set(demands.values())) == 1
            if alike and await self._refused_parts(await asks.trial(frozenset(uids[:1])), uids[:1]):
                found.update(dict.fromkeys(uids, why))
                continue
            order = {demand: number for number, demand in enumerate(dict.fromkeys(demands.values()))}
            ordered = sorted(uids, key=lambda uid: order[demands[uid]])
            middle = len(ordered) // 2
            for half in (ordered[:middle], ordered[middle:]):
                parts += await self._refused_parts(await asks.trial(frozenset(half)), half)
        if found:
            self._part = None
        return found if found or self._part is not None else dict.fromkeys(*whole)

    async def _refused_parts(self, plan: ProvisioningPlan, uids: Iterable[str]) -> list[_Part]:
        """The pods whose claims of such a plan are refused, claim by claim."""
        asked = frozenset(uids)
        mine = [node for node in plan.proposed if any(pod.uid in asked for pod in node.pods)]
        said = [(node, await self._refusal(plan.type_lists, node)) for node in mine]
        refused = [(tuple(pod.uid for pod in node.pods if pod.uid in asked), why) for node, why in said if why]
        if mine and not refused:
            self._part = replace(plan, proposed=tuple(mine))
        return refused

    async def _refusal(self, lists: TypeLists, proposed: ProposedNode) -> str:
        """Why the API server would refuse the claim; empty where it would take it."""
        self._asks += 1
        request = CreateRequest(plan_id="dry-run", proposed=(proposed,), type_lists=lists)
        try:
            await self.claims.may_create(new_claim(request, 0))
        except Permanent as refusal:
            return one_line(str(refusal)) or "no reason was given"
        return ""


def _demand(pod: Pod) -> object:
    return pod.shape, tuple(sorted(pod.requests.items()))
