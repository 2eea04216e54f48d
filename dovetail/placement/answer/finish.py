"""What do the drafts of a finished pass look like as nodes to create?

The last step of a pass (PLC-137, PLC-190 to PLC-198). Types are sorted by price and cut. The hostname and the two
labels of the simulation are left out. The least that the DaemonSets will take is added to the requests. A requirement
that allows many values becomes one concrete label, which is random in Karpenter but the same on every machine here
(PLQ-10).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from dovetail.model import names
from dovetail.model.places.placements import NewNode
from dovetail.model.places.reservations import RESERVATION_ID_SUFFIX
from dovetail.model.pools import InstanceType, NodePool
from dovetail.model.scheduling.requirements import Requirement, RequirementSet, merge, requirement
from dovetail.model.values.drafts import draft_of
from dovetail.model.values.hashing import NODE_POOL_HASH_ALGORITHM
from dovetail.model.values.resources import Resources
from dovetail.placement.constraints.reservations import Held
from dovetail.placement.facts.claim_rules import POD_RESOURCES, SIMULATION_KEYS
from dovetail.placement.facts.templates import Template
from dovetail.placement.facts.type_table import CompiledType
from dovetail.placement.min_values import shortest_prefix
from dovetail.placement.prices import price_order
from dovetail.placement.search.node_draft import NodeDraft
from dovetail.placement.settings import PlacementSettings

_NewNodeDraft: Final = draft_of(NewNode)


class Finished(NamedTuple):
    """A draft as a new node, or the keys for which truncation left too few distinct values (PLC-137)."""

    node: NewNode | None
    draft: NodeDraft
    short: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What drafts of one state and the same reservations have in common."""

    requirements: RequirementSet
    identity: frozenset[Requirement]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outline:
    """What drafts of one form share if they have the same possible types."""

    form: _Form
    types: tuple[InstanceType, ...]
    annotations: Mapping[str, str]
    least: Resources  # what DaemonSets take on any of the types
    grace: float | None
    short: Mapping[str, int]  # keys that truncation leaves with too few values


class _ByPrice:
    """The types of one template, sorted by their price in one form."""

    def __init__(self, prices: list[float]) -> None:
        self._prices = prices
        offered = [number for number, price in enumerate(prices) if price < inf]
        distinct = len({prices[number] for number in offered}) == len(offered)
        self._order = sorted(offered, key=prices.__getitem__) if distinct else []
        self._in_order = itemgetter(*self._order) if len(self._order) > 1 else None

    def order(self, present: bytes) -> list[int]:
        """The numbers of the types that are present, by price.

        If no two prices are equal, a subset keeps the order of the whole; only the order of equals depends on what
        else is sorted (PLQ-11).
        """
        if self._in_order is not None:
            found = list(compress(self._order, self._in_order(present)))
            if len(found) == present.count(1):
                return found
        numbers = list(compress(range(len(present)), present))
        return [numbers[index] for index in price_order([self._prices[number] for number in numbers])]


class Finisher:
    """Turns drafts into new nodes; what drafts have in common is computed once."""

    def __init__(self, settings: PlacementSettings) -> None:
        self._settings = settings
        self._by_price: dict[tuple[int, frozenset[Requirement]], _ByPrice] = {}
        self._forms: dict[tuple[int, Held], _Form] = {}
        self._outlines: dict[tuple[int, Held, int, bool], _Outline] = {}

    def finish(self, draft: NodeDraft, drivers: Sequence[str] = ()) -> Finished:
        """The node to create for a draft. `drivers`: those whose devices its pods are to get (PLC-191)."""
        key = (draft.state.number, draft.held, draft.settled_rows(), draft.min_values_relaxed)
        outline = self._outlines.get(key)
        if outline is None:
            outline = self._outlines[key] = self._outline(draft)
        if outline.short:
            return Finished(node=None, draft=draft, short=outline.short)
        pool, form = draft.template.pool, outline.form
        node = _NewNodeDraft()
        node.pool = pool.name
        node.pool_uid = pool.uid
        node.node_class = pool.template.node_class
        node.requirements = form.requirements
        node.types = outline.types
        node.requests = _requests(draft, outline.least)
        node.pods = tuple(draft.pods)
        node.labels = form.labels
        node.annotations = outline.annotations
        if drivers:
            node.annotations = {**outline.annotations, names.DEVICE_DRIVERS: ",".join(drivers)}
        node.taints = pool.template.taints
        node.startup_taints = pool.template.startup_taints
        node.expire_after = pool.template.expire_after
        node.termination_grace = outline.grace
        node.__class__ = NewNode
        return Finished(node=node, draft=draft, short={})

    def _outline(self, draft: NodeDraft) -> _Outline:
        """The types by price, up to the greatest number, and what holds for all of them (PLC-122, PLC-126, PLC-137)."""
        template, form = draft.template, self._form(draft)
        key = (template.number, form.identity)
        by_price = self._by_price.get(key)
        if by_price is None:
            by_price = self._by_price[key] = _ByPrice(template.table.prices(form.requirements))
        order = by_price.order(template.table.present(draft.rows))[: self._settings.max_types]
        short: Mapping[str, int] = {}
        if self._settings.min_values_policy == "Strict":
            types = (template.table.types[number].requirements for number in order)
            _, short = shortest_prefix(types, form.requirements, self._settings.profile.minimum_counts_listed)
        return _Outline(
            form=form,
            types=tuple(map(template.table.sources.__getitem__, order)),
            annotations=_annotations(draft, [template.table.types[number] for number in order]),
            least=_least_of_daemons(draft),
            grace=template.pool.template.termination_grace,
            short=short,
        )

    def _form(self, draft: NodeDraft) -> _Form:
        """Requirements and labels, with the reservations that the draft holds (PLC-187, PLC-190, PLC-197)."""
        key = (draft.state.number, draft.held)
        known = self._forms.get(key)
        if known is None:
            items = {key: item for key, item in draft.state.requirements.items() if key not in SIMULATION_KEYS}
            if draft.held:
                items[names.CAPACITY_TYPE] = requirement(names.CAPACITY_TYPE, "In", (names.CAPACITY_RESERVED,))
                label = _reservation_key(draft.template)
                items = merge(items, {label: Requirement(key=label, complement=False, values=draft.held)})
            known = self._forms[key] = _Form(
                requirements=items,
                identity=frozenset(items.values()),
                labels=_labels(draft.template.pool, items, self._settings.well_known),
            )
        return known


def _annotations(draft: NodeDraft, types: Sequence[CompiledType]) -> dict[str, str]:
    """The template's annotations, the pool's hash, and the marks of relaxation and overlays (PLC-59, PLC-125,
    PLC-139)."""
    pool = draft.template.pool
    return {
        **pool.template.annotations,
        names.NODE_POOL_HASH: pool.hash,
        names.NODE_POOL_HASH_VERSION: NODE_POOL_HASH_ALGORITHM,
        names.MIN_VALUES_RELAXED: "true" if draft.min_values_relaxed else "false",
        **(_overlays(types) if draft.template.table.overlaid else {}),
    }


def _least_of_daemons(draft: NodeDraft) -> Resources:
    """Per resource, the least that DaemonSets take on any remaining type (PLC-182f)."""
    fit = draft.template.fit
    groups = zip(fit.overheads, fit.overhead_rows, strict=True)
    amounts = [overhead.requests for overhead, rows in groups if rows & draft.rows]
    shared = set.intersection(*(set(requests) for requests in amounts)) if amounts else set()
    return {name: min(requests[name] for requests in amounts) for name in shared}


def _requests(draft: NodeDraft, daemons: Resources) -> Resources:
    """What the pods and the DaemonSets ask for (PLC-182f)."""
    used = dict(zip(draft.template.table.dimensions.names, draft.used, strict=True))
    asked = {id(pod.requests): pod.requests for pod in draft.pods}
    requests = {name: used.get(name, 0) for name in sorted(set().union(*asked.values()))}  # also an explicit zero
    for name, amount in daemons.items():
        requests[name] = requests.get(name, 0) + amount
    if len(requests) > POD_RESOURCES:  # of many pods together; few are above zero, as a type must have those
        requests = {name: amount for name, amount in requests.items() if amount}
    return requests


def _reservation_key(template: Template) -> str:
    for item in template.table.types:
        for offering in item.offerings:
            if offering.reservation is not None:
                for key in offering.requirements:
                    if key.endswith(RESERVATION_ID_SUFFIX):
                        return key
    raise AssertionError("a reservation is held and no offering has an id")


def concrete_value(item: Requirement) -> str:
    """The first value, or the smallest integer that is allowed (PLC-48); empty for DoesNotExist."""
    if not item.complement:
        return min(item.values, default="")
    number = item.gte if item.gte is not None else min(0, item.lte) if item.lte is not None else 0
    while str(number) in item.values and (item.lte is None or number < item.lte):
        number += 1
    return str(number)


def _labels(pool: NodePool, requirements: RequirementSet, well_known: frozenset[str]) -> dict[str, str]:
    """The labels of the template, and one value for each requirement on a label of the user's own (PLC-197)."""
    labels = pool.node_labels
    for key, item in requirements.items():
        if key not in well_known and key != names.HOSTNAME and (value := concrete_value(item)):
            labels[key] = value
    return labels


def _overlays(types: Sequence[CompiledType]) -> dict[str, str]:
    """The marks that say whether an overlay has changed a price or a capacity among the types (PLC-139)."""
    found: dict[str, str] = {}
    if any(offering.source.price_overlay for item in types for offering in item.offerings):
        found[names.PRICE_OVERLAY] = "true"
    if any(item.source.capacity_overlay for item in types):
        found[names.CAPACITY_OVERLAY] = "true"
    return found
