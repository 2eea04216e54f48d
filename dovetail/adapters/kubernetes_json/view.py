"""The ports ClusterView and ClusterLookups, answered from the cache.

Used on the real cluster and in the simulated world alike. Each plugs in a function that explains why its cache cannot
be trusted now, so that nothing is decided on what was true before the connection broke.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from dovetail.adapters.kubernetes_json.cache import Cache
from dovetail.messages.writes import Write
from dovetail.model.names import SYSTEM_NAMESPACE
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.objects.unreadable import Unreadable
from dovetail.model.objects.watched_kinds import CLAIMS, NODES, PODS, Kinds
from dovetail.model.objects.workloads import (
    AdmissionGuard,
    Deployment,
    Namespace,
    PodDisruptionBudget,
    SelectorSource,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from dovetail.model.own.drain_rules import DrainRules
from dovetail.model.own.pauses import Activity, Pause
from dovetail.model.own.policies import Freeze, Policy, policies_of
from dovetail.model.places.move_changes import GUARD_KINDS
from dovetail.model.places.moves import Moves
from dovetail.model.pods import Pod
from dovetail.model.pools import NodePool
from dovetail.model.scheduling.devices import ResourceSlice
from dovetail.model.snapshot import Snapshot
from dovetail.ports.failures import NotReadable, NotSeenYet
from dovetail.rules.pause.pauses import holding, pause_of_pool, pauses_of_all

CATCH_UP_SECONDS: Final = 10.0  # a watch that is this late is broken; planning is tried again later


_DRAIN_RULES: Final[Kinds] = frozenset({"DisruptionPolicy", "NodePool"})
_PAUSES: Final[Kinds] = frozenset({"Freeze", "NodePool", "Namespace"})


def always_usable(kind: str) -> str:
    """For a cache that cannot lose its source."""
    return ""


def never_silent(kind: str) -> float:
    return 0.0


def always_guarded() -> bool:
    return True


class CachedView:
    def __init__(
        self,
        cache: Cache,
        clock: Callable[[], float],
        problem: Callable[[str], str] = always_usable,
        silent: Callable[[str], float] = never_silent,
        guarded: Callable[[], bool] = always_guarded,
    ) -> None:
        """`silent`: for how many seconds the watch of a kind has delivered nothing; `guarded`: whether the policy of
        moves has refused what it must, whatever its object says."""
        self.cache = cache
        self._problem = problem  # of a kind: empty while it can be trusted, else why it cannot
        self._clock, self.silent_for, self._guarded = clock, silent, guarded

    def snapshot(self, reads: Kinds | None = None) -> Snapshot:
        self.insist(reads)
        found = self.cache.snapshot(self._clock())
        return found if not found.guards or self._guarded() else replace(found, guards={})

    def stale(self) -> dict[str, str]:
        problems = {kind.name: self._problem(kind.name) for kind in self.cache.kinds()}
        return {kind: problem for kind, problem in problems.items() if problem}

    def revision(self) -> int:
        return self.cache.revision

    def revision_of(self, kinds: Kinds) -> int:
        return self.cache.revision_of(kinds)

    async def changed(self, after: int) -> int:
        while True:
            with self.cache.changes.listen() as heard:
                if self.cache.revision > after:
                    return self.cache.revision
                await heard

    async def catch_up(self, writes: Sequence[Write]) -> None:
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self._caught_up(writes)
        except TimeoutError:
            self.insist(frozenset(write.kind for write in writes))
            missing = [write for write in writes if not self.cache.has_seen(write)]
            if not missing:
                return
            first = missing[0]
            message = (
                f"not seen at version {first.version} within {CATCH_UP_SECONDS:.0f} s, nor {len(missing) - 1} others"
            )
            raise NotSeenYet(f"{first.kind}/{first.name}", message) from None

    async def _caught_up(self, writes: Sequence[Write]) -> None:
        waiting, kinds = list(writes), frozenset(write.kind for write in writes)
        while True:
            with self.cache.bell.listen() as heard:
                waiting = [write for write in waiting if not self.cache.has_seen(write)]
                if not waiting and not self._first_problem(kinds):
                    return
                await heard

    def unreadable(self) -> tuple[Unreadable, ...]:
        return self.cache.unreadable()

    def claim(self, name: str) -> NodeClaim | None:
        self.insist(CLAIMS)
        return cast(NodeClaim | None, self.cache.get("NodeClaim", name))

    def node(self, name: str) -> Node | None:
        self.insist(NODES)
        return cast(Node | None, self.cache.get("Node", name))

    def nodes_of(self, provider_id: str) -> tuple[Node, ...]:
        self.insist(NODES)
        return self.cache.indexed("Node", provider_id)

    def slices_on(self, node: str) -> tuple[ResourceSlice, ...] | None:
        if not any(kind.name == "ResourceSlice" for kind in self.cache.kinds()):
            return None
        self.insist(frozenset({"ResourceSlice"}))
        return self.cache.indexed("ResourceSlice", node)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        self._insist_on("Pod", node)
        return self.cache.indexed("Pod", node)

    def pod(self, uid: str) -> Pod | None:
        self.insist(PODS)
        return cast(Pod | None, self.cache.get("Pod", uid))

    def all_pods(self) -> Collection[Pod]:
        self.insist(PODS)
        return cast(Collection[Pod], self.cache.objects("Pod").values())

    def has_pool(self, name: str) -> bool:
        found = self.pool(name)
        return found is not None and found.deleting_since is None

    def pool(self, name: str) -> NodePool | None:
        return cast(NodePool | None, self.cache.get("NodePool", name))

    def budgets_in(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        return self.cache.indexed("PodDisruptionBudget", namespace)

    def volume_claim(self, key: str) -> VolumeClaim | None:
        self.insist(frozenset({"PersistentVolumeClaim"}))
        return cast(VolumeClaim | None, self.cache.get("PersistentVolumeClaim", key))

    def volume(self, name: str) -> Volume | None:
        self.insist(frozenset({"PersistentVolume"}))
        return cast(Volume | None, self.cache.get("PersistentVolume", name))

    def attachments_on(self, node: str) -> tuple[VolumeAttachment, ...]:
        self._insist_on("VolumeAttachment", node)
        return self.cache.indexed("VolumeAttachment", node)

    def moves(self) -> Moves:
        return Moves(CachedWorkloads(self.cache, self._first_problem, self._guarded), self._clock())

    def moves_from(self, node: str) -> tuple[Deployment, ...]:
        return self.cache.indexed("Deployment", node)

    def pause_on(self, pool: str, activity: Activity) -> Pause | None:
        """As last seen: a pause is not forgotten because the watch of its object is broken. For a kind that has not
        been seen since the start it is unknown whether something pauses."""
        now, found = self._clock(), cast(NodePool | None, self.cache.get("NodePool", pool))
        system = cast(Namespace | None, self.cache.get("Namespace", SYSTEM_NAMESPACE))
        general = pauses_of_all(system, cast(Mapping[str, Freeze], self.cache.objects("Freeze")), now)
        own = pause_of_pool(found, now) if found is not None else None
        paused = holding((*general, own), activity)
        if paused is None:
            self._insist_listed(_PAUSES)
        return paused

    def drain_rules(self, pool: str) -> tuple[DrainRules, ...]:
        policies = cast(Mapping[str, Policy], self.cache.objects("DisruptionPolicy"))
        self.insist(_DRAIN_RULES)
        found = cast(NodePool | None, self.cache.get("NodePool", pool)) if policies else None
        ours = policies_of(policies, found) if found is not None else ()
        return tuple([policy.drain for policy in ours if policy.drain is not None])

    def insist(self, reads: Kinds | None = None) -> None:
        """NotSeenYet while one of these kinds cannot be trusted; without `reads`, any."""
        problem = self._first_problem(reads)
        if problem:
            raise NotSeenYet("cluster view", problem)

    def _first_problem(self, reads: Kinds | None) -> str:
        watched = [kind.name for kind in self.cache.kinds() if reads is None or kind.name in reads]
        return next(filter(None, map(self._problem, watched)), "")

    def _insist_listed(self, reads: Kinds) -> None:
        """NotSeenYet while one of these kinds has not been listed since the start, though it may be installed."""
        self.insist(frozenset(kind for kind in reads if not self.cache.has_listed(kind)))

    def _insist_on(self, kind: str, node: str) -> None:
        """NotReadable while an object that holds that node cannot be read: the node must not look empty."""
        self.insist(frozenset({kind}))
        unreadable = self.cache.unreadable_on(kind, node, self._clock())
        if unreadable is not None:
            raise NotReadable(f"{kind}/{unreadable.name}", f"{unreadable.field}: {unreadable.message}")


class CachedWorkloads:
    """The look-ups of the port dovetail.model.places.moves.Workloads, as last seen."""

    def __init__(self, cache: Cache, problem: Callable[[Kinds | None], str], guarded: Callable[[], bool]) -> None:
        self._cache, self._problem, self._guarded = cache, problem, guarded

    def unseen(self, *kinds: str) -> bool:
        return bool(self._problem(frozenset(kinds)))

    def replica_set(self, key: str) -> SelectorSource | None:
        return cast(SelectorSource | None, self._cache.get("ReplicaSet", key))

    def deployment(self, key: str) -> Deployment | None:
        return cast(Deployment | None, self._cache.get("Deployment", key))

    def namespace(self, name: str) -> Namespace | None:
        return cast(Namespace | None, self._cache.get("Namespace", name))

    def volume_claim(self, key: str) -> VolumeClaim | None:
        return cast(VolumeClaim | None, self._cache.get("PersistentVolumeClaim", key))

    def volume(self, name: str) -> Volume | None:
        return cast(Volume | None, self._cache.get("PersistentVolume", name))

    def guard(self, key: str) -> AdmissionGuard | None:
        """None also if its watch is broken, since somebody may have deleted it, and if it let something pass."""
        kind, _, name = key.partition("/")
        if self._problem(frozenset(GUARD_KINDS)) or not self._guarded():
            return None
        return cast(AdmissionGuard | None, self._cache.get(kind, name))
