"""What will the DaemonSets take of a node?

A new node, and one that is still coming up, must keep room for them (PLC-182a to PLC-182f). One pod represents a
DaemonSet: its newest live one, because admission may have changed its requests, or else one made from its template. It
has the template's node affinity, because the DaemonSet controller pins each live pod to its node.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.workloads import DaemonSet
from dovetail.model.pods import HostPort, Pod, Toleration
from dovetail.model.scheduling.requirements import RequirementSet, compatible
from dovetail.model.scheduling.taints import Taint, untolerated
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.resources import Resources, fits, total
from dovetail.placement.facts.claim_rules import POD_RESOURCES
from dovetail.placement.facts.dimensions import ORDINARY
from dovetail.placement.facts.fit import Overhead
from dovetail.placement.facts.masks import bits
from dovetail.placement.facts.pod_needs import pod_requirements
from dovetail.placement.facts.type_table import TypeTable
from dovetail.placement.facts.within_reason import KnownLabels, within_reason
from dovetail.placement.settings import PlacementSettings

PREFER_NO_SCHEDULE = Toleration(operator="Exists", effect="PreferNoSchedule")

DaemonRows = Callable[["Daemon", Sequence[int], Sequence[int]], int]


@dataclass(slots=True, kw_only=True, eq=False)
class Daemon:
    """One DaemonSet's representative: requests, ports, and one requirement set per or-ed node term.

    `first` is the first term that counts; it moves only under Karpenter's profile (PLQ-7). `oversized_counts`: also on
    nodes that could not hold it.
    """

    name: str
    pod: Pod
    alternatives: tuple[RequirementSet, ...]
    oversized_counts: bool
    since: float = 0.0  # when the DaemonSet was made
    first: int = 0

    @property
    def requests(self) -> Resources:
        """What the pod asks for, `pods: 1` included."""
        return self.pod.requests

    @property
    def turn(self) -> tuple[int, float, str]:
        """Where room is short: by priority, as the kube-scheduler gives it, then by age."""
        return -(self.pod.priority or 0), self.since, self.name

    @property
    def ports(self) -> tuple[HostPort, ...]:
        return self.pod.shape.host_ports


def _representative(pod: Pod, template: Pod) -> Pod:
    shape = pod.shape
    if template.shape.required_terms:
        shape = replace(shape, required_terms=template.shape.required_terms)
    shape = replace(shape, tolerations=(*shape.tolerations, PREFER_NO_SCHEDULE))
    return replace(pod, shape=shape)


def daemons_of(snapshot: Snapshot, settings: PlacementSettings, labels: KnownLabels, judging: Judging) -> list[Daemon]:
    """One representative per DaemonSet, sorted by namespace and name (PLC-182a, PLC-182e)."""
    newest: dict[tuple[str, str], Pod] = {}  # by namespace too: nobody checks the owner that a pod names
    if snapshot.daemon_sets:
        wanted = {item.uid for item in snapshot.daemon_sets.values() if item.uid}
        for pod in snapshot.pods.values():
            for owner in pod.owners:
                if owner.uid in wanted and owner.kind == "DaemonSet" and owner.controller:
                    present = newest.get((pod.namespace, owner.uid))
                    if present is None or (pod.created, pod.name) > (present.created, present.name):
                        newest[pod.namespace, owner.uid] = pod
    found = []
    for item in sorted(snapshot.daemon_sets.values(), key=lambda d: (d.namespace, d.name)):
        pod = _representative(newest.get((item.namespace, item.uid), item.pod), item.pod)
        if pod.shape.uses_resource_claims and settings.ignore_dra:
            continue
        daemon = judging.judge(item, "placement", _daemon, item, pod, settings, labels)
        if not isinstance(daemon, Unjudged):
            found.append(daemon)
    return found


def _daemon(item: DaemonSet, pod: Pod, settings: PlacementSettings, labels: KnownLabels) -> Daemon:
    shape = labels.narrowed(within_reason(pod.shape))
    if len(pod.requests) > POD_RESOURCES:
        pod = replace(pod, requests={name: amount for name, amount in pod.requests.items() if amount})
    alternatives = tuple(
        pod_requirements(replace(shape, required_terms=(term,) if term else ()), preferences=False)
        for term in shape.required_terms or ((),)
    )
    return Daemon(
        name=f"{item.namespace}/{item.name}",
        pod=pod,
        alternatives=alternatives,
        oversized_counts=settings.profile.oversized_daemons_count,
        since=item.created,
    )


def _rows_for(daemon: Daemon, requirements: RequirementSet, table: TypeTable, daemon_rows: DaemonRows) -> int:
    """The rows on which the daemon will run (PLC-182b)."""
    suiting = [
        table.overlapping(wanted) if compatible(requirements, wanted, table.well_known) else 0
        for wanted in daemon.alternatives
    ]
    return daemon_rows(daemon, suiting, table.type_rows)


def _room(table: TypeTable, row: int) -> Resources:
    number, group = table.rows[row]
    return table.types[number].groups[group][0]


def _rows_with_room(daemon: Daemon, rows: int, of_pool: int, table: TypeTable) -> int:
    """Without the rows that lack a device of the daemon's, and none if the pool has no row that holds it (PLQ-69).

    A type that is only too small stays one to avoid, if there is a larger one.
    """
    if not any(fits(daemon.requests, _room(table, row)) for row in bits(rows & of_pool)):
        return 0
    devices = {name: amount for name, amount in daemon.requests.items() if amount and name not in ORDINARY}
    return sum(1 << row for row in bits(rows) if fits(devices, _room(table, row))) if devices else rows


Running = list[tuple[Daemon, int]]  # with the rows on which it counts


def _on(running: Running, table: TypeTable, row: int) -> list[Daemon]:
    """Those that count on the type of the row (PLC-182c)."""
    rows = table.type_rows[table.rows[row][0]]
    return [daemon for daemon, mask in running if mask & rows]


def _together(running: Running, rows: int, table: TypeTable) -> bool:
    """Whether one of the rows has room for all that count there."""
    return any(fits(total(d.requests for d in _on(running, table, row)), _room(table, row)) for row in bits(rows))


def _in_turn(running: Running, of_pool: int, table: TypeTable) -> Running:
    """Where no row of the pool has room for all of them, those that have room beside the ones whose turn is before
    theirs (PLQ-69)."""
    if not of_pool or any(daemon.oversized_counts for daemon, _ in running) or _together(running, of_pool, table):
        return running
    counted: Running = []
    for daemon, rows in sorted(running, key=lambda each: each[0].turn):
        if not rows & of_pool or _together([*counted, (daemon, rows)], rows & of_pool, table):
            counted.append((daemon, rows))
    return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What the DaemonSets of a pool take: the groups of rows with the same ones, and the group of each row.
    `oversized`: the DaemonSets that count nowhere."""

    groups: tuple[Overhead, ...]
    group_of: tuple[int, ...]
    oversized: tuple[str, ...]


def overheads_of(
    daemons: Iterable[Daemon],
    requirements: RequirementSet,
    table: TypeTable,
    small_enough: int,
    daemon_rows: DaemonRows,
) -> Overheads:
    """What those that tolerate the taints of a pool take of its nodes. `small_enough`: the rows that its limits let
    through."""
    of_pool = table.rows_of(requirements)
    of_pool = of_pool & small_enough or of_pool
    running: Running = []
    oversized: list[str] = []
    for daemon in daemons:
        wanted = _rows_for(daemon, requirements, table, daemon_rows)
        rows = wanted if daemon.oversized_counts else _rows_with_room(daemon, wanted, of_pool, table)
        running.append((daemon, rows))
        if wanted & of_pool and not rows:
            oversized.append(daemon.name)
    counted = _in_turn(running, of_pool, table)
    oversized += [each[0].name for each in running if each not in counted]
    return _grouped([each for each in running if each in counted], table, tuple(sorted(oversized)))


Beside = Callable[["Daemon"], Resources]  # what runs on a node and does not make way for the daemon's pod


def _alone(_: "Daemon") -> Resources:
    return {}


def _requests(daemons: Iterable[Daemon]) -> list[Resources]:
    return [daemon.requests for daemon in daemons]


def _held(daemons: Iterable[Daemon], room: Resources, beside: Beside = _alone) -> list[Daemon]:
    """Those that have room beside what runs there and the ones whose turn is before theirs (PLQ-69)."""
    held: list[Daemon] = []
    for daemon in sorted(daemons, key=lambda each: each.turn):
        alone = fits(daemon.requests, room)  # one resource tells of most that have no room, and nothing is summed
        if daemon.oversized_counts or (
            alone and fits(total([beside(daemon), *_requests(held), daemon.requests]), room)
        ):
            held.append(daemon)
    return held


def _grouped(running: Running, table: TypeTable, oversized: tuple[str, ...]) -> Overheads:
    numbers: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    groups: list[Overhead] = []
    group_of: list[int] = []

    def number_of(chosen: list[Daemon], left_out: tuple[str, ...] = ()) -> int:
        names = tuple(daemon.name for daemon in chosen)
        if (names, left_out) not in numbers:
            numbers[names, left_out] = len(groups)
            groups.append(
                Overhead(
                    requests=total(daemon.requests for daemon in chosen),
                    ports=tuple(port for daemon in chosen for port in daemon.ports),
                    daemon_sets=names,
                    left_out=left_out,
                )
            )
        return numbers[names, left_out]

    for row in range(len(table.rows)):
        chosen, room = _on(running, table, row), _room(table, row)
        number = number_of(chosen)
        if not fits(groups[number].requests, room):
            held = _held(chosen, room)
            if len(held) < len(chosen):
                left_out = tuple(daemon.name for daemon in chosen if daemon not in held)
                number = number_of([daemon for daemon in chosen if daemon in held], left_out)
        group_of.append(number)
    return Overheads(groups=tuple(groups), group_of=tuple(group_of), oversized=oversized)


def expected_on_node(
    daemons: Sequence[Daemon],
    taints: tuple[Taint, ...],
    labels: RequirementSet,
    room: Resources,
    beside: Beside = _alone,
) -> list[Resources]:
    """What each daemon requests that a node with these effective taints, labels and allocatable will run
    (PLC-182d); where it has no room for all, those whose turn is first (PLQ-69)."""
    found = [
        daemon
        for daemon in daemons
        if untolerated(taints, daemon.pod.shape.tolerations) is None
        and compatible(labels, daemon.alternatives[daemon.first])
    ]
    return [daemon.requests for daemon in _held(found, room, beside)]
