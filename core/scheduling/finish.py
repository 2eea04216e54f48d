"""What do the claims of a finished pass look like as nodes to create?

Asked once per pass (S-137, S-190 to S-198). Types are put into price order and cut; the hostname and the two labels of
the simulation go; what the DaemonSets will take at least is added to the requests. The trap avoided: a concrete label
for a requirement that allows many values is random upstream and must be the same on every machine here (Q-10).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.model import names
from core.model.placement import NewNode
from core.model.pools import NodePool
from core.model.requirements import Requirement, RequirementSet, merge, requirement
from core.model.resources import Resources, total
from core.scheduling.min_values import minima_of, shortest_prefix
from core.scheduling.on_claims import Claim
from core.scheduling.prices import cheapest, price_order
from core.scheduling.settings import PlacementSettings
from core.scheduling.templates import SIMULATION_KEYS, Template, template_labels
from core.scheduling.type_table import RESERVATION_ID_SUFFIX, CompiledType

HASH_VERSION = "v3"  # the version of upstream's hash of spec.template (N-1)
PRICE_OVERLAY = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY = "karpenter.sh/capacity-overlay-applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A claim's final form, or the news that truncation left too few distinct values (S-137)."""

    node: NewNode | None
    claim: Claim
    short: Mapping[str, int]


class Finisher:
    """Turns claims into new nodes; equal type lists are one tuple."""

    def __init__(self, settings: PlacementSettings) -> None:
        self._settings = settings
        self._ordered: dict[tuple[int, frozenset[Requirement], int], tuple[CompiledType, ...]] = {}
        self._prices: dict[tuple[int, frozenset[Requirement]], dict[int, float]] = {}

    def finish(self, claim: Claim) -> Finished:
        """The node to create for a claim."""
        template = claim.template
        requirements = self._requirements(claim)
        types = self._types(template, requirements, claim.rows)
        minima = minima_of(requirements)
        if minima and self._settings.min_values_policy == "Strict":
            _, short = shortest_prefix((item.requirements for item in types), minima)
            if short:
                return Finished(node=None, claim=claim, short=short)
        pool = template.pool
        return Finished(
            node=NewNode(
                pool=pool.name,
                pool_uid=pool.uid,
                node_class=pool.template.node_class,
                requirements=requirements,
                types=tuple(item.source for item in types),
                requests=_requests(claim),
                pods=tuple(claim.pods),
                labels=_labels(pool, requirements, self._settings.well_known),
                annotations=_annotations(pool, claim, types),
                taints=pool.template.taints,
                startup_taints=pool.template.startup_taints,
                expire_after=pool.template.expire_after,
                termination_grace=_grace(pool, self._settings),
            ),
            claim=claim,
            short={},
        )

    def _requirements(self, claim: Claim) -> RequirementSet:
        """S-187, S-190."""
        items = {key: item for key, item in claim.state.requirements.items() if key not in SIMULATION_KEYS}
        if not claim.held:
            return items
        items[names.CAPACITY_TYPE] = requirement(names.CAPACITY_TYPE, "In", (names.CAPACITY_RESERVED,))
        key = _reservation_key(claim.template)
        held = {key: Requirement(key=key, complement=False, values=claim.held)}
        return merge(items, held)

    def _types(self, template: Template, requirements: RequirementSet, rows: int) -> tuple[CompiledType, ...]:
        """S-126, S-137: the claim's types by price, at most so many."""
        identity = frozenset(requirements.values())
        key = (template.number, identity, rows)
        known = self._ordered.get(key)
        if known is None:
            prices = self._prices.setdefault((template.number, identity), {})
            numbers = template.table.types_in(rows)
            for number in numbers:
                if number not in prices:
                    offerings = ((o.requirements, o.price) for o in template.table.types[number].offerings)
                    prices[number] = cheapest(offerings, requirements, self._settings.well_known)
            order = price_order([prices[number] for number in numbers])[: self._settings.max_types]
            known = self._ordered[key] = tuple([template.table.types[numbers[index]] for index in order])
        return known


def _reservation_key(template: Template) -> str:
    for item in template.table.types:
        for offering in item.offerings:
            if offering.reservation is not None:
                for key in offering.requirements:
                    if key.endswith(RESERVATION_ID_SUFFIX):
                        return key
    raise AssertionError("a reservation is held and no offering has an id")


def _requests(claim: Claim) -> Resources:
    """S-182f: the pods and, per resource, the least that DaemonSets take on any type that is left."""
    fit = claim.template.fit
    present = [
        overhead.requests for overhead, rows in zip(fit.overheads, fit.overhead_rows, strict=True) if rows & claim.rows
    ]
    shared = set.intersection(*(set(requests) for requests in present)) if present else set()
    least = {name: min(requests[name] for requests in present) for name in shared}
    return total([*(pod.requests for pod in claim.pods), least])


def concrete_value(item: Requirement) -> str:
    """S-48, in a stated order: the first value, or the smallest integer that is allowed; none for DoesNotExist."""
    if not item.complement:
        return min(item.values, default="")
    number = item.gte if item.gte is not None else min(0, item.lte) if item.lte is not None else 0
    while str(number) in item.values and (item.lte is None or number < item.lte):
        number += 1
    return str(number)


def _labels(pool: NodePool, requirements: RequirementSet, well_known: frozenset[str]) -> dict[str, str]:
    """S-197."""
    labels = template_labels(pool)
    for key, item in requirements.items():
        if key not in well_known and key != names.HOSTNAME and (value := concrete_value(item)):
            labels[key] = value
    return labels


def _annotations(pool: NodePool, claim: Claim, types: Sequence[CompiledType]) -> dict[str, str]:
    """S-59, S-125, S-139."""
    annotations = {
        **pool.template.annotations,
        names.NODE_POOL_HASH: pool.hash,
        names.NODE_POOL_HASH_VERSION: HASH_VERSION,
        names.MIN_VALUES_RELAXED: "true" if claim.min_values_relaxed else "false",
    }
    if any(offering.source.price_overlay for item in types for offering in item.offerings):
        annotations[PRICE_OVERLAY] = "true"
    if any(item.source.capacity_overlay for item in types):
        annotations[CAPACITY_OVERLAY] = "true"
    return annotations


def _grace(pool: NodePool, settings: PlacementSettings) -> float | None:
    grace = pool.template.termination_grace
    return settings.default_termination_grace if grace is None else grace
