"""What will the DaemonSets take of a node?

A new node, and one that is still coming up, must keep room for them (PLC-182a to PLC-182f). One pod represents a
DaemonSet: its newest live one, because admission may have changed its requests, or else one made from its template. It
has the template's node affinity, because the DaemonSet controller pins each live pod to its node.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dovetail.model.objects.judging import Judging, Unjudged
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


@dataclass(slots=True, kw_only=True)
class Daemon:
    """One DaemonSet's representative: requests, ports, and one requirement set per or-ed node term.

    `first` is the first term that counts; it moves only under Karpenter's profile (PLQ-7). `oversized_counts`: also on
    nodes that could not hold it.
    """

    name: str
    pod: Pod
    alternatives: tuple[RequirementSet, ...]
    oversized_counts: bool
    first: int = 0

    @property
    def requests(self) -> Resources:
        """What the pod asks for, `pods: 1` included."""
        return self.pod.requests

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
        daemon = judging.judge(item, "placement", _daemon, f"{item.namespace}/{item.name}", pod, settings, labels)
        if not isinstance(daemon, Unjudged):
            found.append(daemon)
    return found


def _daemon(name: str, pod: Pod, settings: PlacementSettings, labels: KnownLabels) -> Daemon:
    shape = labels.narrowed(within_reason(pod.shape))
    if len(pod.requests) > POD_RESOURCES:
        pod = replace(pod, requests={name: amount for name, amount in pod.requests.items() if amount})
    alternatives = tuple(
        pod_requirements(replace(shape, required_terms=(term,) if term else ()), preferences=False)
        for term in shape.required_terms or ((),)
    )
    return Daemon(
        name=name, pod=pod, alternatives=alternatives, oversized_counts=settings.profile.oversized_daemons_count
    )


def _rows_for(daemon: Daemon, requirements: RequirementSet, table: TypeTable, daemon_rows: DaemonRows) -> int:
    """The rows on which the daemon will run (PLC-182b)."""
    suiting = [
        table.overlapping(wanted) if compatible(requirements, wanted, table.well_known) else 0
        for wanted in daemon.alternatives
    ]
    return daemon_rows(daemon, suiting, table.type_rows)


def _rows_with_room(daemon: Daemon, rows: int, of_pool: int, table: TypeTable) -> int:
    """Without the rows that lack a device of the daemon's, and none if the pool has no row that holds it (PLQ-69).

    A type that is only too small stays one to avoid, if there is a larger one.
    """

    def holds(row: int, wanted: Resources) -> bool:
        number, group = table.rows[row]
        return fits(wanted, table.types[number].groups[group][0])

    if not any(holds(row, daemon.requests) for row in bits(rows & of_pool)):
        return 0
    devices = {name: amount for name, amount in daemon.requests.items() if amount and name not in ORDINARY}
    return sum(1 << row for row in bits(rows) if holds(row, devices)) if devices else rows


def overhead_groups(
    daemons: Sequence[Daemon],
    requirements: RequirementSet,
    taints: tuple[Taint, ...],
    table: TypeTable,
    daemon_rows: DaemonRows,
) -> tuple[list[Overhead], list[int], tuple[str, ...]]:
    """Types with the same daemons form a group: the groups, the group of each type (PLC-182c), and the daemons that
    none of the pool's types holds."""
    of_pool = table.rows_of(requirements)
    running: list[tuple[Daemon, int]] = []
    oversized: list[str] = []
    for daemon in daemons:
        if untolerated(taints, daemon.pod.shape.tolerations) is None:
            wanted = _rows_for(daemon, requirements, table, daemon_rows)
            rows = wanted if daemon.oversized_counts else _rows_with_room(daemon, wanted, of_pool, table)
            running.append((daemon, rows))
            if wanted & of_pool and not rows:
                oversized.append(daemon.name)
    numbers: dict[tuple[int, ...], int] = {}
    groups: list[Overhead] = []
    group_of: list[int] = []
    for rows in table.type_rows:
        members = tuple(index for index, (_, mask) in enumerate(running) if mask & rows)
        number = numbers.get(members)
        if number is None:
            number = numbers[members] = len(groups)
            chosen = [running[index][0] for index in members]
            groups.append(
                Overhead(
                    requests=total(daemon.requests for daemon in chosen),
                    ports=tuple(port for daemon in chosen for port in daemon.ports),
                    daemon_sets=tuple(daemon.name for daemon in chosen),
                )
            )
        group_of.append(number)
    return groups, group_of, tuple(oversized)


def expected_on_node(
    daemons: Sequence[Daemon], taints: tuple[Taint, ...], labels: RequirementSet, room: Resources
) -> list[Resources]:
    """What each daemon requests that a node with these effective taints, labels and allocatable will run
    (PLC-182d)."""
    return [
        daemon.requests
        for daemon in daemons
        if untolerated(taints, daemon.pod.shape.tolerations) is None
        and compatible(labels, daemon.alternatives[daemon.first])
        and (daemon.oversized_counts or fits(daemon.requests, room))
    ]
