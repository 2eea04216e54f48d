"""The answer of `dovetail plan -f`: which nodes drift and why, what they become, when, and which of them stay.

Every figure follows from the two supposed snapshots and the outlook on the second. Nodes that had already drifted are
counted separately: they would leave without the change too.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dovetail.answers.change.basis import Basis
from dovetail.answers.change.fields import FieldChange, field_changes
from dovetail.answers.change.rollouts import RolloutAnswer, rollouts_of
from dovetail.answers.change.supposition import ChangedObject, Supposed
from dovetail.answers.look.sources import Look
from dovetail.disruption.nodes.costs import node_price
from dovetail.disruption.nodes.fleet import Fleet
from dovetail.disruption.outlook.after import Departure
from dovetail.disruption.outlook.paces import FIRST_SECONDS, Source
from dovetail.disruption.outlook.waves import Outlook, Stay, Supposing, outlook
from dovetail.lifecycle.unplanned_claims import with_unplanned_as_nodes
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_reschedulable
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.time import format_time
from dovetail.placement.provisioning_plan import plan_provisioning
from dovetail.settings.deciding import disruption_settings, placement_settings

HOURS_A_MONTH: Final = 730.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAnswer:
    kind: str
    name: str
    is_new: bool
    fields: tuple[FieldChange, ...]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSize:
    """A node's type, and what it costs per hour."""

    instance_type: str
    zone: str
    capacity_type: str
    price: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorAnswer:
    pool: str
    size: NodeSize


@dataclass(frozen=True, slots=True, kw_only=True)
class StaysAnswer:
    """Why a drifted node stays."""

    reason: str
    message: str
    remedy: str
    opens: str | None = None  # when its budget changes next


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftedNode:
    """One node that the change makes drift, or that had drifted before. `wave` counts from 1."""

    node: str
    claim: str
    pool: str
    why: str  # the reason of the condition Drifted
    already: bool  # it had drifted before the change
    size: NodeSize
    pods: int
    wave: int | None = None
    becomes: tuple[SuccessorAnswer, ...] = ()
    onto: tuple[str, ...] = ()
    stays: StaysAnswer | None = None
    under_way: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveAnswer:
    """Nodes that begin to leave at one time; times in RFC 3339. Waves of different NodePools may overlap."""

    number: int
    begins: str
    ends: str
    nodes: int
    replacements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceAnswer:
    """How long a node of that pool takes in a wave: the median of `count` cases of the record, or of existing nodes;
    `source` is empty if none is known."""

    pool: str
    replaced: bool  # a new node is launched first
    seconds: float
    source: Source
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Homeless:
    """A pod that would find no place. `node`: where it runs; empty if it waits."""

    pod: str
    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Dollars an hour: all nodes of NodePools before and after, and those of them that leave and that come."""

    before: float
    after: float
    going: float
    coming: float

    @property
    def saved(self) -> float:
        """How much less an hour costs; negative if it costs more."""
        return self.going - self.coming


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAnswer:
    """Everything that the change would cause."""

    cluster: str = ""
    source: str
    at: str
    until: str  # the end of the outlook
    objects: tuple[ObjectAnswer, ...]
    nodes: tuple[DriftedNode, ...]
    all_nodes: int
    no_longer_drifted: tuple[str, ...] = ()
    waves: tuple[WaveAnswer, ...] = ()
    rollouts: tuple[RolloutAnswer, ...] = ()  # how it is rolled out, if each question is answered at once
    moved_pods: int = 0  # that must move, each counted once
    moves: int = 0  # their moves: a pod whose new node leaves too moves again
    paces: tuple[PaceAnswer, ...] = ()
    costs: Costs
    homeless: tuple[Homeless, ...] = ()
    placed: tuple[str, ...] = ()  # waiting pods that would find a place only through the change
    errors: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    cut: bool = False
    not_reached: int = 0  # waiting pods that there was no time for, before or after the change
    left_behind: bool = False  # whether anything remains undone after all waves

    @property
    def staying(self) -> tuple[DriftedNode, ...]:
        """The nodes that would be left behind."""
        return tuple(node for node in self.nodes if node.stays is not None)


def change_answer(basis: Basis, supposed: Supposed, until: float) -> ChangeAnswer:
    look = basis.look
    settings = disruption_settings(look.settings)
    prices = _prices(Fleet(supposed.before, settings))
    limit = look.searching()
    supposing = Supposing(paces=basis.paces, first=FIRST_SECONDS, approves=True, should_stop=limit)
    found = outlook(supposed.after, settings, until, supposing)
    late = [limit.note("the look ahead at drifted nodes ended there")] if found.cut and limit() else []
    waiting = _waiting(look, supposed)
    nodes = _nodes(supposed, found, prices)
    placed = tuple(Homeless(pod=pod, node=stay.node, why=why) for stay in found.stays for pod, why in stay.unplaced)
    moves = [pod for each in found.departures for pod in each.moved]
    answer = ChangeAnswer(
        cluster=look.settings.cluster,
        source=look.source,
        at=format_time(supposed.before.now),
        until=format_time(until),
        objects=tuple(_object(each) for each in supposed.objects),
        nodes=nodes,
        all_nodes=sum(1 for claim in supposed.before.claims.values() if _stands(supposed.before, claim)),
        no_longer_drifted=_no_longer(supposed),
        waves=_waves(found),
        rollouts=rollouts_of(found, frozenset(supposed.before.rollouts)),
        moved_pods=len(set(moves)),
        moves=len(moves),
        paces=_paces(found),
        costs=_costs(prices, supposed.before, found),
        homeless=(*placed, *waiting.lost),
        placed=waiting.gained,
        not_reached=waiting.not_reached,
        errors=(*supposed.errors, *found.errors),
        unreadable=tuple(f"{u.kind} {u.name}: {u.field}: {u.message}" for u in look.unreadable),
        notes=(*look.notes, *late, *look.placing().pods_note(waiting.not_reached)),
        pauses=look.pauses,
        cut=found.cut,
    )
    return replace(answer, left_behind=_leaves_behind(answer))


def _leaves_behind(answer: ChangeAnswer) -> bool:
    unusable = any(each.faults for each in answer.objects)
    return bool(answer.staying or answer.homeless or answer.errors or answer.cut or answer.not_reached or unusable)


def _object(changed: ChangedObject) -> ObjectAnswer:
    return ObjectAnswer(
        kind=changed.kind,
        name=changed.name,
        is_new=changed.before is None,
        fields=field_changes(changed.before, changed.after),
        faults=changed.faults,
    )


def _stands(snapshot: Snapshot, claim: NodeClaim) -> bool:
    return claim.labels.get(names.NODE_POOL, "") in snapshot.pools and snapshot.is_ours(claim.node_class)


def _prices(fleet: Fleet) -> Mapping[str, NodeSize]:
    """Each claim's current size, by the current catalogue: the change may remove its type from the list."""
    sizes = {}
    for claim in fleet.snapshot.claims.values():
        if not _stands(fleet.snapshot, claim):
            continue
        zone, capacity_type = claim.labels.get(names.ZONE, ""), claim.labels.get(names.CAPACITY_TYPE, "")
        instance_type = claim.labels.get(names.INSTANCE_TYPE, "")
        known = fleet.types_of(claim.labels[names.NODE_POOL]).get(instance_type)
        sizes[claim.name] = NodeSize(
            instance_type=instance_type,
            zone=zone,
            capacity_type=capacity_type,
            price=node_price(known, zone, capacity_type),
        )
    return sizes


def _nodes(supposed: Supposed, found: Outlook, prices: Mapping[str, NodeSize]) -> tuple[DriftedNode, ...]:
    gone: dict[str, tuple[int, Departure]] = {
        each.claim: (number, each) for number, wave in enumerate(found.waves, 1) for each in wave.departures
    }
    stays = {stay.claim: stay for stay in found.stays}
    pods = Counter(pod.node_name for pod in supposed.before.pods.values() if is_reschedulable(pod))
    answers = []
    for name, claim in sorted(supposed.after.claims.items()):
        condition = claim.condition(names.DRIFTED)
        if condition is None or condition.status != "True" or name not in prices:
            continue
        wave, departure = gone.get(name, (None, None))
        answers.append(
            DriftedNode(
                node=claim.node_name or name,
                claim=name,
                pool=claim.labels.get(names.NODE_POOL, ""),
                why=condition.reason,
                already=supposed.before.claims[name].is_true(names.DRIFTED),
                size=prices[name],
                pods=len(departure.moved) if departure is not None else pods[claim.node_name],
                wave=wave,
                becomes=_becomes(departure),
                onto=departure.onto if departure is not None else (),
                stays=_stays(stays.get(name)),
                under_way=departure is None and name not in stays,
            )
        )
    return tuple(sorted(answers, key=lambda each: (each.wave is None, each.wave or 0, each.node)))


def _becomes(departure: Departure | None) -> tuple[SuccessorAnswer, ...]:
    made = departure.successors if departure is not None else ()
    return tuple(
        SuccessorAnswer(
            pool=each.pool,
            size=NodeSize(
                instance_type=each.instance_type.name if each.instance_type else "",
                zone=each.zone,
                capacity_type=each.capacity_type,
                price=each.price,
            ),
        )
        for each in made
    )


def _stays(stay: Stay | None) -> StaysAnswer | None:
    if stay is None:
        return None
    return StaysAnswer(
        reason=str(stay.why),
        message=stay.message,
        remedy=stay.why.lifted_by,
        opens=None if stay.opens is None else format_time(stay.opens),
    )


def _no_longer(supposed: Supposed) -> tuple[str, ...]:
    return tuple(
        sorted(
            claim.node_name or name
            for name, claim in supposed.before.claims.items()
            if claim.is_true(names.DRIFTED) and not supposed.after.claims[name].is_true(names.DRIFTED)
        )
    )


def _waves(found: Outlook) -> tuple[WaveAnswer, ...]:
    return tuple(
        WaveAnswer(
            number=number,
            begins=format_time(wave.begins),
            ends=format_time(wave.ends),
            nodes=len(wave.departures),
            replacements=sum(len(each.successors) for each in wave.departures),
        )
        for number, wave in enumerate(found.waves, 1)
    )


def _paces(found: Outlook) -> tuple[PaceAnswer, ...]:
    return tuple(
        PaceAnswer(pool=pool, replaced=replaced, seconds=round(pace.seconds, 1), source=pace.source, count=pace.count)
        for (pool, replaced), pace in sorted(found.paces.items())
    )


def _costs(prices: Mapping[str, NodeSize], before: Snapshot, found: Outlook) -> Costs:
    total = sum(size.price for size in prices.values())
    going = sum(prices[each.claim].price for each in found.departures if each.claim in prices)
    coming = sum(each.price for departure in found.departures for each in departure.successors)
    # A successor may drift itself, if a window opens on a template that its own labels do not satisfy.
    again = sum(each.price for each in found.departures if each.claim not in before.claims)
    return Costs(before=total, after=total - going + coming - again, going=going, coming=coming - again)


class _Waiting(NamedTuple):
    """Pending pods that lose their place through the change, those that gain one only through it, and how many others
    there was no time for."""

    lost: tuple[Homeless, ...]
    gained: tuple[str, ...]
    not_reached: int


def _waiting(look: Look, supposed: Supposed) -> _Waiting:
    placing = placement_settings(look.settings)
    before, after = (
        {
            refused.pod.key: refused
            for refused in plan_provisioning(with_unplanned_as_nodes(snapshot), placing, look.placing())[1].refused
        }
        for snapshot in (supposed.before, supposed.after)
    )
    unknown = {key for found in (before, after) for key, refused in found.items() if refused.is_not_reached}
    lost = tuple(
        Homeless(pod=pod, node="", why=", ".join(refused.reasons))
        for pod, refused in sorted(after.items())
        if pod not in before and pod not in unknown
    )
    pods = {pod.key for pod in supposed.before.pods.values()}  # a buffer's room is none of them
    return _Waiting(lost, tuple(sorted(before.keys() - after.keys() - unknown)), len(unknown & pods))
