"""What would be launched for a claim (AWS-71, AWS-75 to AWS-83).

The first half of a launch: it changes nothing in AWS, and its result is frozen on the claim. A class whose status was
written for an older spec is not ready, so that nothing is prepared from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings import OfferedType
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, OfferingsCache
from dovetail.adapters.aws.catalogue.pool_overlays import PoolOverlays
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.launch.frozen_launch import (
    FleetOverride,
    FrozenLaunch,
    LaunchGroup,
    LaunchPlace,
    write_launch,
)
from dovetail.adapters.aws.launch.launch_terms import FleetTerms, LaunchTerms, reserved_amounts
from dovetail.adapters.aws.launch.selection import FleetChoice, SuitableTypes, choose, suitable_types
from dovetail.adapters.aws.launch.template_maker import TemplateMaker, TemplateNames
from dovetail.adapters.aws.node_class.node_class import Image, NodeClass, NodeClasses, UnreadableClass, image_for
from dovetail.adapters.aws.resources.placement_groups import PlacementGroup
from dovetail.adapters.aws.resources.reservations import Reservation
from dovetail.adapters.aws.tags import ForbiddenTag, class_tags, cluster_tag
from dovetail.adapters.aws.user_data.bootstrap import BadUserData
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.own.claim_memory import BACK, OLD_IMAGES, images_of, memory_of
from dovetail.model.pods import Expression
from dovetail.model.scheduling.requirements import conflicts, from_expressions
from dovetail.ports.cloud import NOTHING_SUITS, ClassNotReady, LaunchRefused, LaunchWarning, NoCapacity, Prepared

MOST_GROUPS: Final = 50  # launch templates of one CreateFleet; every reservation needs one of its own
NO_IMAGE: Final = "no instance types satisfy requirements of amis"

_KEPT: Final = 16  # sets of requirements; some hundred types suit each

Prices = dict[tuple[str, str], float]  # by instance type and zone


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What was found among the offered types for one pool's claims, as long as types and images stay the same."""

    offered: tuple[OfferedType, ...]
    images: tuple[Image, ...]
    suitable: dict[tuple[Expression, ...], SuitableTypes] = field(default_factory=dict)  # by requirements
    image_of: dict[str, str | None] = field(default_factory=dict)  # by instance type

    def image_for(self, sized: SizedType) -> str | None:
        """The first image that suits the type; None if none does."""
        name = sized.facts.name
        if name not in self.image_of:
            self.image_of[name] = image_for(self.images, sized.requirements)
        return self.image_of[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Narrowed:
    """Those of the offered types that the images of before suit."""

    offered: tuple[OfferedType, ...]
    images: tuple[Image, ...]
    among: tuple[OfferedType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """What the fleet will be asked for."""

    choice: FleetChoice
    places: Mapping[str, LaunchPlace]  # by zone
    prices: Mapping[LaunchTerms, Prices]  # a group for each of the terms


class LaunchPreparer:
    def __init__(
        self, classes: NodeClasses, offerings: OfferingsCache, cluster: Cluster, region: str, overlays: PoolOverlays
    ) -> None:
        self._classes, self._offerings, self._cluster = classes, offerings, cluster
        self._region, self._overlays = region, overlays
        self._searches: dict[str, _Search] = {}
        self._names = TemplateNames()
        self._narrowed: dict[str, _Narrowed] = {}

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        """The launch as text, or why there is none."""
        node_class = usable_class(self._classes, claim)
        if not isinstance(node_class, NodeClass):
            return node_class
        try:
            pool = claim.labels.get(core.NODE_POOL, "")
            offered = self._overlays.applied(await self._offerings.offered_types(node_class), pool)
        except NoTypes as error:
            return LaunchRefused(reason="InstanceTypeResolutionFailed", message=str(error))
        return await self._with_images(claim, node_class, offered)

    async def _with_images(
        self, claim: NodeClaim, node_class: NodeClass, offered: tuple[OfferedType, ...]
    ) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        """With the images that the claim names. If these are gone or suit no type, with those of its NodeClass, except
        for a claim that replaces a node with these images."""
        pin = memory_of(claim.annotations).roll_out
        if pin.how not in OLD_IMAGES:
            return await self._prepared(claim, node_class, offered, node_class.images)
        older = older_images(claim, node_class, offered)
        there = await self._offerings.sources.images.among(frozenset(image.id for image in older))
        usable = tuple(image for image in older if image.id in there)
        wanted, runs_on = from_expressions(claim.requirements), self._runs_on(node_class, claim, offered, usable)
        if any(not conflicts(each.sized.requirements, wanted) for each in runs_on):
            return await self._prepared(claim, node_class, runs_on, usable)
        why = "suits an instance type that may be launched" if usable else "can be launched"
        said = f"no image of before the change {why}: {', '.join(each.words for each in pin.images)}"
        if pin.how == BACK:
            return LaunchRefused(reason="StableImageGone", message=said)
        found = await self._prepared(claim, node_class, offered, node_class.images)
        return replace(found, without=said) if isinstance(found, Prepared) else found

    def _runs_on(
        self, node_class: NodeClass, claim: NodeClaim, offered: tuple[OfferedType, ...], images: tuple[Image, ...]
    ) -> tuple[OfferedType, ...]:
        """The types that one of the images suits: among these the cheapest is chosen, and none without an image."""
        key = _place_of(node_class, claim)
        known = self._narrowed.get(key)
        if known is None or known.offered is not offered or known.images != images:
            among = tuple(each for each in offered if image_for(images, each.sized.requirements) is not None)
            known = self._narrowed[key] = _Narrowed(offered=offered, images=images, among=among)
        return known.among

    async def _prepared(
        self, claim: NodeClaim, node_class: NodeClass, offered: tuple[OfferedType, ...], images: tuple[Image, ...]
    ) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        strict = not self._offerings.sources.settings.best_effort_min_values
        if memory_of(claim.annotations).asks_again:
            again = tuple(replace(each, type=each.type.asked_again()) for each in offered)
            search = _Search(offered=again, images=images)
            search.suitable[claim.requirements] = suitable_types(claim.requirements, again)
        else:
            search = self._search(node_class, claim, offered, images)
        choice = choose(claim, search.suitable[claim.requirements], strict_min_values=strict)
        if not isinstance(choice, FleetChoice):
            return _why_none(claim, offered, choice)
        places = self._places(node_class, choice)
        prices = _by_terms(search, claim, choice, places)
        if prices is None:
            return LaunchRefused(reason="LaunchFailed", message=NO_IMAGE)
        if not prices:
            return NoCapacity(
                message="insufficient capacity, no subnet with free addresses in any zone that is for sale"
            )
        return await self._freeze(claim, node_class, _Chosen(choice=choice, places=places, prices=prices))

    def _search(
        self, node_class: NodeClass, claim: NodeClaim, offered: tuple[OfferedType, ...], images: tuple[Image, ...]
    ) -> _Search:
        """Claims of one plan have the same requirements and the same types, so 1,400 types are searched once."""
        key = f"{_place_of(node_class, claim)}/{images != node_class.images}"
        search = self._searches.get(key)
        if search is None or search.offered is not offered or search.images != images or len(search.suitable) > _KEPT:
            search = self._searches[key] = _Search(offered=offered, images=images)
        if claim.requirements not in search.suitable:
            search.suitable[claim.requirements] = suitable_types(claim.requirements, offered)
        return search

    def _places(self, node_class: NodeClass, choice: FleetChoice) -> dict[str, LaunchPlace]:
        """The roomiest subnet of each zone; a full one is left out (AWS-71)."""
        best: dict[str, tuple[int, str]] = {}
        for subnet in node_class.status.subnets or ():
            if self._offerings.is_full(choice.capacity_type, subnet.id):
                continue
            room = self._offerings.sources.subnets.room(subnet.id)
            rank = (-(room or 0), subnet.id)
            if subnet.zone not in best or rank < best[subnet.zone]:
                best[subnet.zone] = rank
        return {zone: LaunchPlace(subnet, zone) for zone, (_, subnet) in best.items()}

    async def _freeze(
        self, claim: NodeClaim, node_class: NodeClass, chosen: _Chosen
    ) -> Prepared | ClassNotReady | LaunchRefused:
        maker = await self._template_maker(claim, node_class, chosen.choice)
        if isinstance(maker, ClassNotReady):
            return maker
        places = sorted(chosen.places.values())
        try:
            groups = self._groups(maker, chosen, places)
        except BadUserData as error:
            return LaunchRefused(
                reason="LaunchFailed", message=f"creating instance, getting launch template configs, {error}"
            )
        launch = FrozenLaunch(
            node_class=node_class.name,
            class_hash=node_class.hash(self._cluster.known.ca_bundle),
            fleet=maker.fleet,
            profile=node_class.status.instance_profile or "",
            context="" if claim.annotations.get(core.MIN_VALUES_RELAXED) == "true" else node_class.spec.context or "",
            overlaid=any(offering.overlaid for option in chosen.choice.options for offering in option.offerings),
            tags={**maker.tags, **cluster_tag(self._offerings.sources.settings.cluster_uid)},
            places=tuple(places),
            groups=groups,
        )
        # A reservation is asked for one at a time, so that never more is asked for than it has.
        alone = launch.fleet.capacity_type == core.CAPACITY_RESERVED or memory_of(claim.annotations).asks_again
        shared = self._offerings.sources.settings.launch_groups and not alone
        return Prepared(request=write_launch(launch), shared=shared)

    async def _template_maker(
        self, claim: NodeClaim, node_class: NodeClass, choice: FleetChoice
    ) -> TemplateMaker | ClassNotReady:
        sources = self._offerings.sources
        facts = await self._cluster.for_launch(with_cidr=node_class.family == "AL2023")
        if node_class.family == "AL2023" and not facts.service_cidr:
            return ClassNotReady(message="the cluster's service range is not known")
        try:
            tags = class_tags(node_class, sources.settings.cluster, claim.labels.get(core.NODE_POOL, ""))
        except ForbiddenTag as error:
            return ClassNotReady(message=str(error))
        group = await sources.groups.of_class(node_class)
        fleet = FleetTerms(
            capacity_type=choice.capacity_type, tenancy=choice.tenancy, partition=partition_for(claim, group)
        )
        return TemplateMaker(
            settings=sources.settings,
            region=self._region,
            facts=facts,
            node_class=node_class,
            claim=claim,
            tags=tags,
            fleet=fleet,
            group_id=group.id if group else None,
        )

    def _groups(self, maker: TemplateMaker, chosen: _Chosen, places: Iterable[LaunchPlace]) -> tuple[LaunchGroup, ...]:
        """The groups in a fixed order, so that the same launch is always the same text; of more than a fleet takes,
        those with the cheapest offerings."""
        numbers = {place.zone: number for number, place in enumerate(places)}
        cheapest = nsmallest(
            MOST_GROUPS, chosen.prices, lambda terms: (min(chosen.prices[terms].values()), repr(terms))
        )
        return tuple(
            LaunchGroup(
                template=self._names.name(maker, terms),
                terms=terms,
                overrides=_overrides(chosen.prices[terms], numbers),
            )
            for terms in sorted(cheapest, key=repr)
        )


def older_images(claim: NodeClaim, node_class: NodeClass, offered: Iterable[OfferedType]) -> tuple[Image, ...]:
    """Those that the claim names, each replacing the images that the types which ran it would get today."""
    named = images_of(claim.annotations)
    wanted = {name for each in named for name in each.types}
    sized = {each.sized.facts.name: each.sized for each in offered if each.sized.facts.name in wanted}
    found: list[Image] = []
    for older in named:
        for name in older.types:
            today = _image_of(node_class.images, sized[name]) if name in sized else None
            if today is not None and (image := replace(today, id=older.id)) not in found:
                found.append(image)
    return tuple(found)


def _image_of(images: Iterable[Image], sized: SizedType) -> Image | None:
    return next((each for each in images if not conflicts(sized.requirements, each.requirements)), None)


def _overrides(prices: Prices, numbers: Mapping[str, int]) -> tuple[FleetOverride, ...]:
    return tuple(sorted([FleetOverride(name, numbers[zone], price) for (name, zone), price in prices.items()]))


def unresolved_class(why: str) -> NoCapacity:
    """Without a class nothing can be launched for a claim, which counts as no capacity, with an Event (AWS-75)."""
    warning = LaunchWarning(reason="FailedResolvingNodeClass", message=f"Failed resolving NodeClass: {why}")
    return NoCapacity(message=f"resolving node class, {why}", warnings=(warning,))


def usable_class(classes: NodeClasses, claim: NodeClaim) -> NodeClass | NoCapacity | ClassNotReady | LaunchRefused:
    """The claim's class if it can be launched from (AWS-75)."""
    reference = claim.node_class
    found = classes.get(reference.name) if (reference.group, reference.kind) in names.SUPPORTED else None
    if found is None:
        return unresolved_class(f"{reference.kind} {reference.name} does not exist")
    if isinstance(found, UnreadableClass):
        return ClassNotReady(message=found.message)
    if found.deleting:
        return unresolved_class(f"{reference.kind} {reference.name} is being deleted")
    state = found.state
    if found.stale or state.ready == "False":
        return ClassNotReady(message=f"{reference.kind} {reference.name}: {state.message or state.reason}")
    if state.ready == "Unknown":
        return LaunchRefused(reason="NodeClassReadinessUnknown", message=state.message or "its readiness is not known")
    return found


def _place_of(node_class: NodeClass, claim: NodeClaim) -> str:
    """Where the same types are offered: overlays differ between pools."""
    return f"{node_class.uid}/{claim.labels.get(core.NODE_POOL, '')}"


def _why_none(
    claim: NodeClaim, offered: Iterable[OfferedType], found: NoCapacity | LaunchRefused
) -> NoCapacity | LaunchRefused:
    """No capacity only if something is short that will be for sale again: planners see that, and the next claim goes
    elsewhere. With anything else it would meet the same at once: the claim stays and says so."""
    wanted = from_expressions(claim.requirements)
    allowed = [each for each in offered if not conflicts(each.sized.requirements, wanted)]
    if allowed and not any(each.sized.has_image for each in allowed):
        return LaunchRefused(reason="LaunchFailed", message=NO_IMAGE)
    reopened = suitable_types(claim.requirements, map(_reopened, allowed))
    refused = isinstance(found, LaunchRefused)
    if isinstance(choose(claim, reopened, strict_min_values=refused), FleetChoice):
        return NoCapacity(message=found.message)
    return found if refused else NOTHING_SUITS


def _reopened(each: OfferedType) -> OfferedType:
    """As if nothing were short."""
    offerings = tuple(
        replace(o, available=True) if kind.reservation or o.short_until or o.closed or o.unpriced else o
        for kind, o in zip(each.kinds, each.type.offerings, strict=True)
    )
    return replace(each, type=replace(each.type, offerings=offerings))


def _by_terms(
    search: _Search, claim: NodeClaim, choice: FleetChoice, places: Mapping[str, LaunchPlace]
) -> dict[LaunchTerms, Prices] | None:
    """The offerings' prices by the terms that a launch template needs (AWS-83); None if no image suits any type."""
    found: dict[LaunchTerms, Prices] = {}
    any_image = False
    for option in choice.options:
        sized = option.sized
        image = search.image_for(sized)
        if image is None:
            continue
        any_image = True
        efa = sized.facts.efa_interfaces if claim.requests.get(names.EFA) else 0
        terms = LaunchTerms(image=image, max_pods=sized.sizes.pods, efa=efa, reserved=reserved_amounts(sized.sizes))
        offerings = [offering for offering in option.offerings if offering.zone in places]
        plain = {(sized.facts.name, each.zone): each.price for each in offerings if each.reservation is None}
        if plain:
            found.setdefault(terms, {}).update(plain)
        for each in offerings:
            if each.reservation is not None:
                reserved = _of_reservation(terms, each.reservation)
                found.setdefault(reserved, {})[sized.facts.name, each.zone] = each.price
    return found if any_image else None


def _of_reservation(plain: LaunchTerms, reservation: Reservation) -> LaunchTerms:
    market = "interruptible-capacity-reservation" if reservation.interruptible else None
    if reservation.kind == "capacity-block":
        market = "capacity-block"
    return replace(plain, reservation_id=reservation.id, market=market)


def partition_for(claim: NodeClaim, group: PlacementGroup | None) -> str | None:
    """The partition that the claim requires, the lowest number if it allows several; None: EC2 chooses."""
    if group is None or not group.partitions:
        return None
    for expression in claim.requirements:
        if expression.key == names.PARTITION and expression.operator == "In" and expression.values:
            return min(expression.values, key=lambda text: (len(text), text))
    return None
