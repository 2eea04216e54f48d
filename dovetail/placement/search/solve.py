"""In what order are pods tried, how often, and when is it over?

One pass over one snapshot (S-88 to S-95). Pods go largest first; each is tried on existing nodes, then on open claims,
then on a new one, and gives up one preference after each failure; a pod that fails goes to the end of the queue with
all its preferences back, because a later success may let it in. It is over when a whole round brought no success.
The trap avoided: trying all of a thousand equal pods again when nothing has changed since the first of them failed.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from dovetail.model.pods import Pod
from dovetail.model.resources import CPU, MEMORY
from dovetail.placement.cluster.index import Index
from dovetail.placement.constraints.effective_zones import count_by_zone
from dovetail.placement.constraints.limits import Limits
from dovetail.placement.constraints.reservations import Reservations
from dovetail.placement.constraints.topology import Topology
from dovetail.placement.constraints.topology_groups import Group
from dovetail.placement.search.kinds import Kind, KindBook
from dovetail.placement.search.on_nodes import NodePlacer
from dovetail.placement.search.on_proposed_nodes import ClaimPlacer
from dovetail.placement.search.packing import Packing, emptiest_first

_UID, _CREATED = attrgetter("uid"), attrgetter("created")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """How one pass differs from another over the same snapshot."""

    without: frozenset[str] = frozenset()  # names of nodes that are imagined gone
    strict_reservations: bool = True  # S-10; simulations fall back instead (S-218)
    spare_settling_nodes: bool = False  # S-91: consolidation leaves nodes alone that are still filling
    should_stop: Callable[[], bool] | None = None
    packing: Packing = emptiest_first
    count_zones: bool = False  # S-231: for a metric of provisioning


@dataclass(slots=True, kw_only=True)
class Refused:
    """Why a pod is not placed, as far as the pass knows: the last kind that was tried."""

    pod: Pod
    kind: Kind | None
    cause: Literal["tried", "dra", "volumes", "not_reached"] = "tried"


class Pass:
    """The state of one pass: nodes, claims, topology, and the pods that found no place."""

    def __init__(self, index: Index, pods: Sequence[Pod], options: PassOptions) -> None:
        settings = index.settings
        table = index.table
        removed = [table.number[name] for name in options.without if name in table.number]
        self.index = index
        self.options = options
        self.topology = Topology(index.counts, removed, pods, settings)
        active = table.every
        for bit in removed:
            active &= ~(1 << bit)
        self.nodes = NodePlacer(table, active)
        self.claims = ClaimPlacer(
            index.templates,
            Limits(self._limits(removed), settings.profile),
            Reservations(index.reservations, options.strict_reservations, settings.reserved_capacity),
            settings,
        )
        self.kinds = KindBook(self.topology, index.prefer_no_schedule)
        self.refused: dict[str, Refused] = {}
        self.by_zone: Mapping[str, int] = {}
        self.progress = 0
        self.complete = True
        self._kinds_by_uid: dict[str, Kind] = {}  # of placed pods, for groups that are first seen in mid-pass
        self._kind_of: dict[tuple[int, int], Kind] = {}

    def _limits(self, removed: list[int]) -> dict[str, dict[str, int]]:
        """S-62: nodes that are imagined gone do not count."""
        remaining = {pool: dict(left) for pool, left in self.index.limits.items()}
        for bit in removed:
            item = self.index.table.nodes[bit]
            left = remaining.get(item.pool)
            if left is not None:
                for name in left:
                    left[name] += 1 if name == "nodes" else item.capacity.get(name, 0)
        return remaining

    def _settled(self, pod: Pod) -> bool:
        """S-91: whether the pod must leave settling nodes alone."""
        if not self.options.spare_settling_nodes or pod.phase == "Pending":
            return False
        return all(item.node_name != pod.node_name for item in self.index.leaving)

    def kind_of(self, pod: Pod) -> Kind | None:
        """The kind of a pod with all its preferences; None: its volumes cannot be looked up.

        Remembered by shape and requests, where nothing else about the pod has a say.
        """
        facts = self.index.facts(pod)
        if facts is None:
            return None
        kind = self.kinds.kind(facts, self.index.vector(pod.requests), self._settled(pod))
        plain = not pod.shape.volumes and not self.index.settings.default_spread
        if plain and not self.options.spare_settling_nodes:
            self._kind_of[id(pod.shape), id(pod.requests)] = kind
        return kind

    # --- the loop

    def run(self, pods: Sequence[Pod]) -> None:
        """Place what can be placed."""
        found = self._admitted(self._sorted(pods))
        if self.options.count_zones:
            self.by_zone = count_by_zone(kind.kin for pod, kind in found if pod.phase == "Pending")
        queue: deque[tuple[Pod, Kind]] = deque()  # those that failed; `pushed`: the queue's length when they did
        pushed: dict[str, int] = {}
        should_stop = self.options.should_stop
        for position, (pod, kind) in enumerate(found, 1):  # the first round, in which no pod has failed before
            if should_stop is not None and should_stop():
                self._give_up([*found[position - 1 :], *queue])
                return
            if not self._try(kind, pod):
                queue.append((pod, kind))
                pushed[pod.uid] = len(found) - position + len(queue)
        while queue:
            pod, kind = queue[0]
            if pushed[pod.uid] == len(queue):
                return  # S-90: a whole round without success
            if should_stop is not None and should_stop():
                self._give_up(queue)
                return
            queue.popleft()
            if self._try(kind, pod):
                del self.refused[pod.uid]
            else:
                queue.append((pod, kind))
                pushed[pod.uid] = len(queue)

    def _give_up(self, queue: Iterable[tuple[Pod, Kind]]) -> None:
        """Q-23: no time is left; the pods that nobody came to are named."""
        self.complete = False
        for pod, kind in queue:
            if pod.uid not in self.refused:
                self.refused[pod.uid] = Refused(pod=pod, kind=kind, cause="not_reached")

    def _admitted(self, pods: Sequence[Pod]) -> list[tuple[Pod, Kind]]:
        """The pods with their kinds. Groups are made in the order of the queue, so that the input's order is nothing:
        the first pod that asks for a group decides some of its traits (S-169, Q-17)."""
        for shape in dict.fromkeys(pod.shape for pod in pods if pod.shape.anti_affinity):
            self.topology.hold(shape)
        found: list[tuple[Pod, Kind]] = []
        ignore_dra, known = self.index.settings.ignore_dra, self._kind_of
        for pod in pods:
            shape = pod.shape
            kind = known.get((id(shape), id(pod.requests)))
            if kind is not None:
                found.append((pod, kind))
            elif shape.uses_resource_claims and ignore_dra:
                self.refused[pod.uid] = Refused(pod=pod, kind=None, cause="dra")  # S-95 (a)
            elif (kind := self.kind_of(pod)) is None:
                self.refused[pod.uid] = Refused(pod=pod, kind=None, cause="volumes")
            else:
                found.append((pod, kind))
        return found

    @staticmethod
    def _sorted(pods: Sequence[Pod]) -> list[Pod]:
        """S-89: by cpu, then memory, largest first, then by age, then by UID; priority plays no part.

        Pods of one size are put together first and ordered among themselves: sizes are few, and comparing two UIDs is
        cheaper than comparing two tuples.
        """
        by_requests: dict[int, list[Pod]] = {}
        by_size: dict[tuple[int, int], list[Pod]] = {}
        for pod in pods:
            requests = pod.requests
            alike = by_requests.get(id(requests))
            if alike is None:
                size = (-requests.get(CPU, 0), -requests.get(MEMORY, 0))
                alike = by_requests[id(requests)] = by_size.setdefault(size, [])
            alike.append(pod)
        found: list[Pod] = []
        for size in sorted(by_size):
            alike = by_size[size]
            if len(alike) > 1:
                alike.sort(key=_UID)  # stable sorts, the last key first
                alike.sort(key=_CREATED)
            found += alike
        return found

    def _try(self, kind: Kind, pod: Pod) -> bool:
        """S-95, S-101: try, give up one preference, try again."""
        if kind.failed_at == self.progress and not pod.shape.host_ports:
            self.refused[pod.uid] = Refused(pod=pod, kind=kind.last)  # nothing has changed since such a pod failed
            return False
        current = kind
        while True:
            verdict = self.options.packing(self.nodes, self.claims, current, pod)
            if verdict == "placed":
                self.progress += 1
                self._kinds_by_uid[pod.uid] = current
                return True
            following = self._relaxed(current) if verdict == "refused" else None  # S-112
            if following is None:
                break
            current = following
        kind.failed_at, kind.last = self.progress, current
        self.refused[pod.uid] = Refused(pod=pod, kind=current)
        return False

    def _relaxed(self, kind: Kind) -> Kind | None:
        if kind.relaxed:
            return kind.next
        known = set(self.topology.groups)
        following = self.kinds.relaxed(kind)
        new = [group for term, group in self.topology.groups.items() if term not in known]
        for group in self.index.settings.profile.groups_that_look_back(new):
            self._seed(group)
        return following

    def _seed(self, group: Group) -> None:
        """Q-26: a group that is first seen now counts what was placed before."""
        for bit, pods in self.nodes.placed.items():
            for pod in pods:
                if group.term.counts(self._kinds_by_uid[pod.uid].kin.facts.shape):
                    self.nodes.record_in(group, bit)
        for claim in self.claims.claims:
            for pod in claim.pods:
                if group.term.counts(self._kinds_by_uid[pod.uid].kin.facts.shape):
                    self.claims.record_in(group, claim)
