"""In what order are pods tried, how often, and when is it over?

A pass over a snapshot (PLC-88 to PLC-95) takes the largest pods first. Each is tried on existing nodes, then on open
drafts, then on a new one, and gives up one preference after each failure. A pod that fails goes to the end of the queue
with all its preferences restored, because a later success may make room for it. The pass is over when each pod in the
queue has failed since the last success. If one of a thousand like pods has failed and nothing has changed since, the
others are not tried.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Literal

from dovetail.model.objects.judging import Unjudged
from dovetail.model.pods import Pod
from dovetail.model.values.resources import CPU, MEMORY
from dovetail.placement.constraints.by_label import TermsByLabel
from dovetail.placement.constraints.demands import Demand, Demands
from dovetail.placement.constraints.effective_zones import count_by_zone
from dovetail.placement.constraints.limits import Limits
from dovetail.placement.constraints.reservations import Reservations
from dovetail.placement.constraints.topology import Topology
from dovetail.placement.devices.ledger import DeviceLedger
from dovetail.placement.index.index import Index
from dovetail.placement.search.on_nodes import NodePlacer
from dovetail.placement.search.on_proposed_nodes import DraftPlacer
from dovetail.placement.search.packing import Packing, emptiest_first, on_nodes_only

_LOOK_AT_THE_CLOCK = 20  # demands made between two looks at the clock; of a hundred terms each one takes 50 ms
_FIRST_PART = 16  # pods that a pass had no time for; each further part is twice as large

_UID, _CREATED = attrgetter("uid"), attrgetter("created")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """How one pass differs from another over the same snapshot."""

    without: frozenset[str] = frozenset()  # names of nodes that are imagined gone
    closed: frozenset[str] = frozenset()  # names of claims whose nodes take no pods but still count
    strict_reservations: bool = True  # PLC-10; simulations fall back instead (PLC-218)
    spare_settling_nodes: bool = False  # PLC-91: consolidation leaves nodes alone that are still filling
    should_stop: Callable[[], bool] | None = None
    packing: Packing = emptiest_first
    count_zones: bool = False  # PLC-231: for a metric of provisioning
    first: frozenset[str] = frozenset()  # UIDs of pods that come before larger ones: a pass had no time for them


@dataclass(slots=True, kw_only=True)
class Refused:
    """A pod that is not placed, with what the pass knows of why: the last demand that was tried."""

    pod: Pod
    demand: Demand | None
    reason: Literal["tried", "dra", "devices", "volumes", "not_reached", "not_judged"] = "tried"
    fault: str = ""  # of a pod, or its resource claims, that cannot be judged
    begun: bool = False  # of one that was not reached: it was being tried when the time was up


class Pass:
    """The state of one pass: nodes, drafts, topology, and the pods that found no place."""

    def __init__(self, index: Index, pods: Sequence[Pod], options: PassOptions) -> None:
        settings = index.settings
        table = index.table
        removed = [table.number[name] for name in options.without if name in table.number]
        self.index = index
        self.options = options
        self._pods = pods
        self.topology = Topology(index.counts, removed, pods, settings)
        active = table.every
        for bit in removed:
            active &= ~(1 << bit)
        active &= ~index.nodes_of(options.closed)
        self.devices = None if index.devices is None else DeviceLedger(index.devices, self._gone())
        self.nodes = NodePlacer(table, active, self.devices)
        self.drafts = DraftPlacer(
            index.templates,
            Limits(self._limits(removed), settings.profile),
            Reservations(index.reservations, options.strict_reservations, settings.reserved_capacity),
            settings,
            self.devices,
        )
        self.drafts.runs_beside = self._runs_beside
        self.demands = Demands(self.topology, index.prefer_no_schedule)
        self.refused: dict[str, Refused] = {}
        self.by_zone: Counter[str] = Counter()
        self.packing = options.packing
        self.progress = 0
        self.complete = True
        # Of placed pods, for groups that are first seen in mid-pass (PLQ-26).
        self.demands_by_uid: dict[str, Demand] = {}
        self._demand_of: dict[tuple[int, int], Demand] = {}

    def _gone(self) -> frozenset[str]:
        """The names of the nodes that leave, or are imagined gone."""
        leaving = {item.node_name for item in self.index.leaving}
        return frozenset(leaving | {i.node_name for i in self.index.table.nodes if i.name in self.options.without}) - {
            ""
        }

    def _runs_beside(self, pod: Pod) -> frozenset[str]:
        """The DaemonSets that run on the pod's node, if that is imagined gone."""
        return self.index.daemon_sets_on(pod.node_name) if pod.node_name in self.options.without else frozenset()

    def _limits(self, removed: list[int]) -> dict[str, dict[str, int]]:
        """What pools may still add; nodes that are imagined gone do not count (PLC-62)."""
        remaining = {pool: dict(left) for pool, left in self.index.limits.items()}
        for bit in removed:
            item = self.index.table.nodes[bit]
            left = remaining.get(item.pool)
            if left is not None:
                for name in left:
                    left[name] += 1 if name == "nodes" else item.capacity.get(name, 0)
        return remaining

    def _spares_settling(self, pod: Pod) -> bool:
        """Whether the pod must leave settling nodes alone (PLC-91)."""
        if not self.options.spare_settling_nodes or pod.phase == "Pending":
            return False
        return all(item.node_name != pod.node_name for item in self.index.leaving)

    def demand_of(self, pod: Pod) -> Demand | None:
        """The demand of a pod with all its preferences; None: its volumes cannot be looked up.

        Remembered by shape and requests, where nothing else about the pod matters.
        """
        facts = self.index.facts(pod)
        if facts is None:
            return None
        demand = self.demands.demand(facts, self.index.vector(pod.requests), self._spares_settling(pod))
        plain = not pod.shape.volumes and facts.devices is None and not self.index.settings.default_spread
        if plain and not self.options.spare_settling_nodes:
            self._demand_of[id(pod.shape), id(pod.requests)] = demand
        return demand

    # --- another pass over the same pods

    def again(self) -> "Pass":
        """A pass over the same pods that has not begun."""
        return Pass(self.index, self._pods, self.options)

    def placed_pods(self) -> list[Pod]:
        """The pods that have a place, in the order in which they got it."""
        found = [pod for pods in self.nodes.placed.values() for pod in pods]
        found += [pod for draft in self.drafts.made for pod in draft.pods]
        by_uid = {pod.uid: pod for pod in found}
        return [by_uid[uid] for uid in self.demands_by_uid if uid in by_uid]

    def prepare(self, pods: Sequence[Pod]) -> None:
        """Make the groups of all pods that `place_as` or `run` will place later, so that each counts from the start."""
        self._admitted(self._sorted(pods))

    def same_demand(self, demand: Demand) -> Demand:
        """This pass's equivalent of another pass's demand."""
        return self.demands.demand(demand.shape.facts, demand.wanted, demand.spares_settling)

    def place_as(self, demand: Demand, pod: Pod) -> bool:
        done = self.packing(self.nodes, self.drafts, demand, pod) == "placed"
        if done:
            self.settled(demand, pod)
        return done

    def settled(self, demand: Demand, pod: Pod) -> None:
        self.progress += 1
        self.demands_by_uid[pod.uid] = demand
        self.refused.pop(pod.uid, None)

    # --- the loop

    def run(self, pods: Sequence[Pod]) -> None:
        """Place what can be placed. What finds no place beside all DaemonSets may do without those that would not fit
        on its node in any case (PLQ-69)."""
        self._run(pods)
        if self.drafts.crowds and self.complete and (without := self._to_try_again(pods)):
            self.drafts.crowding = True
            self._run(without)
            self.drafts.crowding = False

    def _run(self, pods: Sequence[Pod]) -> None:
        """Pods that an earlier pass had no time for come first, in ever larger parts, because preparing for all of
        them may be what took its time."""
        ordered = self._sorted(pods)
        if not self.options.first:
            self._place_all(self._admitted(ordered))
            return
        ordered, begin, size = self._in_turn(ordered), 0, _FIRST_PART
        while begin < len(ordered) and self.complete:
            known = len(self.topology.groups)
            self.demands, self._demand_of = Demands(self.topology, self.index.prefer_no_schedule), {}
            admitted = self._admitted(ordered[begin : begin + size])
            self._count_earlier(known)
            self._place_all(admitted)
            begin, size = begin + size, size * 2
        if begin < len(ordered):
            self._give_up((pod, None) for pod in ordered[begin:])

    def _place_all(self, found: Sequence[tuple[Pod, Demand]]) -> None:
        if self.options.count_zones:
            pending = (demand.shape for pod, demand in found if pod.phase == "Pending")
            self.by_zone.update(count_by_zone(pending, self.index.zones))
        queue: deque[tuple[Pod, Demand]] = deque()  # those that failed; `pushed`: the length of the queue when they did
        pushed: dict[str, int] = {}
        should_stop = self.options.should_stop
        for position, (pod, demand) in enumerate(found, 1):  # the first round, in which no pod has failed before
            if should_stop is not None and should_stop():
                self._give_up([*found[position - 1 :], *queue])
                return
            if not self._is_settled(demand, pod):
                queue.append((pod, demand))
                pushed[pod.uid] = len(found) - position + len(queue)
        while queue:
            pod, demand = queue[0]
            if pushed[pod.uid] == len(queue):
                return  # PLC-90: a whole round without success
            if should_stop is not None and should_stop():
                self._give_up(queue)
                return
            queue.popleft()
            if not self._is_settled(demand, pod):
                queue.append((pod, demand))
                pushed[pod.uid] = len(queue)

    def _is_settled(self, demand: Demand, pod: Pod) -> bool:
        """Whether the pod need not be tried again: it is placed, or it cannot be judged."""
        placed = self.index.judging.judge(pod, "placement", self._try, demand, pod)
        if isinstance(placed, Unjudged):
            self._set_aside(pod, placed)
            return True
        return placed

    def _set_aside(self, pod: Pod, fault: Unjudged) -> None:
        self.refused[pod.uid] = Refused(pod=pod, demand=None, reason="not_judged", fault=fault.message)

    def run_on_nodes_only(self, pods: Sequence[Pod]) -> tuple[Pod, ...]:
        """Place on existing nodes what fits there; returns the pods that find no place, which are not refused."""
        self.packing = on_nodes_only
        self._run(pods)
        self.packing = self.options.packing
        return self._to_try_again(pods)

    def run_sparing(self, pods: Sequence[Pod], spared: int) -> None:
        """Place what can be placed; these nodes get only pods that find no other place, not even on a new node."""
        self.nodes.spared = spared
        self.run(pods)
        self.nodes.spared = 0
        if spared and (without := self._to_try_again(pods)):
            self.run(without)

    def close(self, pools: frozenset[str]) -> None:
        """Open new nodes of all pools but these; pods that found no place may now have one."""
        if pools != self.drafts.closed:
            self.progress += 1
            self.drafts.close(pools)

    def takes(self, node_name: str, pod: Pod) -> bool:
        """Whether the node takes the pod now, whatever it prefers. A node that is no part of this, and a pod that
        cannot be judged or takes too long, say nothing: yes."""
        bit = self.index.table.number.get(node_name)
        return bit is None or bool(self.index.judging.judge(pod, "placement", self._takes, pod, bit))

    def _takes(self, pod: Pod, bit: int) -> bool:
        demand = self.demand_of(pod)
        while demand is not None and not self.nodes.takes(demand, pod, bit):
            if self._is_late():
                return True
            demand = self._relaxed(demand)
        return demand is not None

    def _to_try_again(self, pods: Sequence[Pod]) -> tuple[Pod, ...]:
        """Those of the pods that found no place, no longer refused; like pods may now find other nodes."""
        self.progress += 1
        tried = {pod.uid for pod in pods}
        without = tuple(r.pod for uid, r in self.refused.items() if r.reason == "tried" and uid in tried)
        for pod in without:
            del self.refused[pod.uid]
        return without

    def _give_up(self, queue: Iterable[tuple[Pod, Demand | None]], *, begun: bool = False) -> None:
        """Time is up: refuse the pods that were not reached, for that reason (PLQ-23). `begun`: they have more to give
        up with which they might have found a place."""
        self.complete = False
        for pod, demand in queue:
            if pod.uid not in self.refused:
                self.refused[pod.uid] = Refused(pod=pod, demand=demand, reason="not_reached", begun=begun)

    def _admitted(self, pods: Sequence[Pod]) -> list[tuple[Pod, Demand]]:
        """The pods with their demands.

        Groups are made in the order of the queue, so that the order of the input does not matter: the first pod that
        asks for a group decides some of its traits (PLC-169, PLQ-17).
        """
        judging, first = self.index.judging, {pod.shape: pod for pod in reversed(pods) if pod.shape.anti_affinity}
        for number, shape in enumerate(dict.fromkeys(pod.shape for pod in pods if pod.shape.anti_affinity), 1):
            if not number % _LOOK_AT_THE_CLOCK and self._is_late():
                self._give_up((pod, None) for pod in pods)
                return []
            judging.judge(first[shape], "anti-affinity", self.topology.hold, shape)
        found: list[tuple[Pod, Demand]] = []
        new, late = 0, False
        ignore_dra, known = self.index.settings.ignore_dra, self._demand_of
        for pod in pods:
            shape = pod.shape
            remembered = known.get((id(shape), id(pod.requests)))
            if remembered is not None:
                found.append((pod, remembered))
                continue
            if shape.uses_resource_claims and ignore_dra:
                self.refused[pod.uid] = Refused(pod=pod, demand=None, reason="dra")  # PLC-95 (a)
                continue
            if shape.device_claims and (fault := self.index.device_fault(pod)):
                self.refused[pod.uid] = Refused(pod=pod, demand=None, reason="devices", fault=fault)
                continue
            new += 1
            late = late or (not new % _LOOK_AT_THE_CLOCK and self._is_late())
            if late:
                self._give_up([(pod, None)])
                continue
            demand = judging.judge(pod, "placement", self.demand_of, pod)
            if isinstance(demand, Unjudged):
                self._set_aside(pod, demand)
            elif demand is None:
                self.refused[pod.uid] = Refused(pod=pod, demand=None, reason="volumes")
            else:
                found.append((pod, demand))
        return found

    def _in_turn(self, pods: list[Pod]) -> list[Pod]:
        """The pods in order. Those that the previous pass had no time for come first, one namespace after the other in
        turn, or many slow pods would keep the others out forever."""
        turns: Counter[str] = Counter()
        late: list[tuple[int, int, Pod]] = []
        for position, pod in enumerate(pods):
            if pod.uid in self.options.first:
                late.append((turns[pod.shape.namespace], position, pod))
                turns[pod.shape.namespace] += 1
        return [
            *(pod for _, _, pod in sorted(late, key=itemgetter(0, 1))),
            *(pod for pod in pods if pod.uid not in self.options.first),
        ]

    @staticmethod
    def _sorted(pods: Sequence[Pod]) -> list[Pod]:
        """By cpu, then memory, largest first, then by age, then by UID; priority plays no part (PLC-89).

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

    def _try(self, demand: Demand, pod: Pod) -> bool:
        """Try, give up one preference, try again (PLC-95, PLC-101)."""
        if demand.failed_at == self.progress and not pod.shape.host_ports:
            self.refused[pod.uid] = Refused(pod=pod, demand=demand.last)  # nothing has changed since such a pod failed
            return False
        current = demand
        while True:
            packed = self.packing(self.nodes, self.drafts, current, pod)
            if packed == "placed":
                self.settled(current, pod)
                return True
            following = self._relaxed(current) if packed == "refused" else None  # PLC-112
            if following is None:
                break
            if self._is_late():
                self._give_up([(pod, None)], begun=True)
                return False
            current = following
        demand.failed_at, demand.last = self.progress, current
        self.refused[pod.uid] = Refused(pod=pod, demand=current)
        return False

    def _is_late(self) -> bool:
        return self.options.should_stop is not None and self.options.should_stop()

    def _relaxed(self, demand: Demand) -> Demand | None:
        """The demand after one step of relaxation; topology groups that are new with it may look back (PLQ-26)."""
        if demand.next_is_known:
            return demand.next
        known = len(self.topology.groups)
        following = self.demands.relaxed(demand)
        if self.index.settings.profile.new_groups_look_back:
            self._count_earlier(known)
        return following

    def _count_earlier(self, known: int) -> None:
        """Let the groups after the first so many count the pods placed before those groups were first seen (PLQ-26)."""
        groups = self.topology.groups
        if len(groups) == known:
            return
        new = TermsByLabel()
        for term in islice(groups, known, None):
            new.add(term)
        for bit, pods in self.nodes.placed.items():
            for pod in pods:
                for term in new.counting(self.demands_by_uid[pod.uid].shape.facts.pod_shape):
                    self.nodes.record_in(groups[term], bit)
        for draft in self.drafts.made:
            for pod in draft.pods:
                for term in new.counting(self.demands_by_uid[pod.uid].shape.facts.pod_shape):
                    self.drafts.record_in(groups[term], draft)
