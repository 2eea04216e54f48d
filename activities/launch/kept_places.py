"""Keeps the places of a claim's pods on its node, with Kubernetes' own field `status.nominatedNodeName`.

The kube-scheduler tries that node first, and counts the pod as running there when it places others of the same or a
lower priority. It removes the nomination whenever it has tried the pod in vain, which it does as often as anything
changes in the cluster. So a pod is nominated before its node opens for pods, and again until the kube-scheduler has had
its chance. While its nomination is missing, anybody may take its room: one task for all steps of the process sees
removals at once. A pod that is bound, gone or nominated by others is left alone. Nothing waits long for these writes,
and none of them fails a step.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from dovetail.activities.shared.every_step.heartbeats import beside
from dovetail.activities.shared.waits.side_by_side import side_by_side
from dovetail.background.supervised import supervised
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_active
from dovetail.model.own.claim_memory import memory_of
from dovetail.model.places.kept_places import keeps_place, planned_pods
from dovetail.model.pods import Pod
from dovetail.notices.places import places_not_kept
from dovetail.ports.failures import Conflict, Failure, Forbidden
from dovetail.ports.objects import Notices, Pods
from dovetail.ports.view import ClusterLookups, ClusterView

_log = logging.getLogger(__name__)

AT_ONCE: Final = 10  # writes of this process, whatever the number of nodes
LONGEST_SECONDS: Final = 5.0  # that the rest of a step waits for
AGAIN_SECONDS: Final = 0.1  # from one nomination of a pod to the next; the kube-scheduler's own pauses are longer
BURST_SECONDS: Final = 0.02  # from a change in the cluster to the look at what it has taken away
MOST_TIMES: Final = 20  # one pod for one node
FORBIDDEN_SECONDS: Final = 300.0  # without a try after a refusal
TRIES: Final = 3  # of one write that meets others


@dataclass(slots=True)
class Nominated:
    """How often a step has nominated each pod, by UID, and when last."""

    times: dict[str, int] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def permits(self, uid: str, now: float) -> bool:
        """Whether the pod may be nominated (again)."""
        return self.times.get(uid, 0) < MOST_TIMES and now - self.last.get(uid, -AGAIN_SECONDS) >= AGAIN_SECONDS

    def count(self, uid: str, now: float) -> None:
        self.times[uid], self.last[uid] = self.times.get(uid, 0) + 1, now


class KeptPlaces:
    def __init__(
        self,
        lookups: ClusterLookups,
        pods: Pods,
        notices: Notices,
        now: Callable[[], float],
        view: ClusterView,
    ) -> None:
        self.lookups, self.pods, self.notices, self.now, self.view = lookups, pods, notices, now, view
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.forbidden_until = 0.0
        self.followed: dict[str, tuple[NodeClaim, str, Nominated]] = {}
        self.follower: asyncio.Task[None] | None = None

    async def keep(self, claim: NodeClaim, node: str, before: Nominated) -> None:
        """Nominate each pod of the claim that waits and is not nominated (any more), now and until `leave`."""
        if not _asks(claim):
            return
        self.followed[claim.name] = claim, node, before
        if self.follower is None:
            self.follower = supervised("kept places", self._follow, context=beside())
        await self._nominate(claim, node, before)

    def leave(self, claim: str) -> None:
        """The step that kept the places of the claim with that name has ended."""
        self.followed.pop(claim, None)
        if not self.followed and self.follower is not None:
            self.follower.cancel()
            self.follower = None

    async def _follow(self) -> None:
        revision = self.view.revision()
        while True:
            await self.view.changed(revision)
            await asyncio.sleep(BURST_SECONDS)
            revision = self.view.revision()
            await asyncio.gather(*[self._nominate(*each) for each in self.followed.values()])

    async def _nominate(self, claim: NodeClaim, node: str, before: Nominated) -> None:
        now = self.now()
        due = [p for p in self._pods_of(claim) if before.permits(p.uid, now) and self._is_due(p, claim, node)]
        for pod in due:
            before.count(pod.uid, now)
        await self._write(claim, due, node, lambda pod: self._is_due(pod, claim, node))

    async def give_up(self, claim: NodeClaim, nodes: Collection[str]) -> None:
        """Remove the nominations, for the nodes of a claim that leaves, from the pods that it was made for."""
        if not _asks(claim):
            return
        held = {name for name in (*nodes, claim.node_name) if name}
        ours = [pod for pod in self._pods_of(claim) if _is_held(pod, held)]
        await self._write(claim, ours, "", lambda pod: _is_held(pod, held))

    def awaits(self, claim: NodeClaim) -> bool:
        """Whether a pod for which a place is kept is still to be bound."""
        return _asks(claim) and any(_waits(pod) for pod in self._pods_of(claim))

    def stand(self, claim: NodeClaim, seen: set[str]) -> bool:
        """Whether our own watch shows every pod nominated: the kube-scheduler's sees it at about the same time, though
        pods and nodes reach it on separate watches. The UIDs of pods that are shown nominated are added to `seen`."""
        if not _asks(claim) or self.now() < self.forbidden_until:
            return True
        waiting = [pod for pod in self._pods_of(claim) if _waits(pod)]
        seen.update(pod.uid for pod in waiting if pod.nominated_node)
        return all(pod.nominated_node for pod in waiting)

    def each_seen(self, claim: NodeClaim, seen: set[str]) -> bool:
        """Whether each pod was seen nominated once, even if the kube-scheduler has removed some nominations
        meanwhile."""
        return all(pod.uid in seen for pod in self._pods_of(claim) if _waits(pod))

    def _pods_of(self, claim: NodeClaim) -> Iterator[Pod]:
        for uid in planned_pods(claim):
            try:
                pod = self.lookups.pod(uid)
            except Failure:
                return  # the view cannot be trusted now; a later look sees
            if pod is not None:
                yield pod

    def _is_due(self, pod: Pod, claim: NodeClaim, node: str) -> bool:
        if not _waits(pod) or pod.nominated_node == node:
            return False
        if not pod.nominated_node:
            return True
        holder = self._holder(pod.nominated_node)
        return holder is not None and keeps_place(holder, pod.uid) and holder.created < claim.created

    def _holder(self, node: str) -> NodeClaim | None:
        found = self.lookups.node(node)
        owner = next((o.name for o in found.owners if o.kind == "NodeClaim"), "") if found is not None else ""
        return self.lookups.claim(owner) if owner else None

    async def _write(self, claim: NodeClaim, pods: list[Pod], node: str, is_due: Callable[[Pod], bool]) -> None:
        if not pods or self.now() < self.forbidden_until:
            return
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await side_by_side([self._one(pod, node, is_due) for pod in pods], AT_ONCE)
        except TimeoutError:
            _log.warning("NodeClaim %s: not all nominations were written within %s s", claim.name, LONGEST_SECONDS)
        except Forbidden as refusal:
            self.forbidden_until = self.now() + FORBIDDEN_SECONDS
            _log.warning("pods could not be nominated: %s", refusal)
            await self.notices.publish(places_not_kept(claim, str(refusal)))
        except Failure as failure:
            _log.warning("NodeClaim %s: a pod was not nominated: %s", claim.name, failure)

    async def _one(self, pod: Pod, node: str, is_due: Callable[[Pod], bool]) -> None:
        async with self.slots:
            for _ in range(TRIES):
                try:
                    await self.pods.nominate(pod, node)
                except Conflict:
                    live = await self.pods.read(pod)
                    if live is None or not is_due(live):
                        return
                    pod = live
                else:
                    return


def _asks(claim: NodeClaim) -> bool:
    return memory_of(claim.annotations).keeps_places


def _waits(pod: Pod) -> bool:
    return is_active(pod) and not pod.node_name


def _is_held(pod: Pod, nodes: Collection[str]) -> bool:
    return not pod.node_name and pod.nominated_node in nodes
