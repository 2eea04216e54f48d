"""What would be bought for a claim (W-71, W-75 to W-83)?

The first half of a launch: it buys nothing and changes nothing in AWS. Its result is frozen on the claim. The trap
avoided: preparing from a status that was written for an older spec of the class.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.catalogue.offerings import Form, Item, Shelved
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, Shelves
from dovetail.adapters.aws.catalogue.pool_overlays import Overlaying
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.launch.frozen_launch import Group, Purchase, frozen
from dovetail.adapters.aws.launch.launch_template_terms import (
    ReservedAmounts,
    TemplateMaker,
    TemplateNames,
    Terms,
    reserved_amounts,
)
from dovetail.adapters.aws.launch.selection import Choice, Preferences, Range, choose, suited
from dovetail.adapters.aws.node_class.node_class import Image, NodeClass, NodeClasses, UnreadableClass
from dovetail.adapters.aws.resources.placement_groups import PlacementGroup
from dovetail.adapters.aws.resources.reservations import Reservation
from dovetail.adapters.aws.tags import ForbiddenTag, class_tags
from dovetail.adapters.aws.user_data.bootstrap import BadUserData
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Expression
from dovetail.model.requirements import conflicts
from dovetail.ports.cloud import ClassNotReady, LaunchRefused, NoCapacity, Prepared

NO_IMAGE: Final = "no instance types satisfy requirements of amis"

_KEPT: Final = 16  # kinds of claims; some hundred types suit each

Place = tuple[str, str]  # subnet, zone


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Types that can share a template."""

    image: str
    max_pods: int
    efa: int
    reserved: ReservedAmounts | None
    reservation_id: str = ""
    market: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What has been found on one shelf for claims of one pool, as long as shelf and images are the same."""

    shelf: tuple[Shelved, ...]
    images: tuple[Image, ...]
    suited: dict[tuple[Expression, ...], Range] = field(default_factory=dict)
    image_of: dict[str, str] = field(default_factory=dict)  # by type


class Preparing:
    """Works launches out."""

    def __init__(self, classes: NodeClasses, shelves: Shelves, cluster: Cluster, view: tuple[str, Overlaying]) -> None:
        self._classes, self._shelves, self._cluster = classes, shelves, cluster
        self._region, self._overlaying = view
        self._looked: dict[str, _Look] = {}
        self._names = TemplateNames()

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        """The purchase as text, or why there is none."""
        node_class = usable_class(self._classes, claim)
        if not isinstance(node_class, NodeClass):
            return node_class
        try:
            shelf = self._overlaying.laid_over(await self._shelves.items(node_class), claim)
        except NoTypes as error:
            return LaunchRefused(reason="InstanceTypeResolutionFailed", message=str(error))
        strict = not self._shelves.sources.settings.best_effort_min_values
        look = self._look(node_class, claim, shelf)
        choice = choose(claim, look.suited[claim.requirements], Preferences(strict_min_values=strict))
        if isinstance(choice, str):
            return NoCapacity(message=f"insufficient capacity, {choice}")
        places = self._places(node_class, choice)
        parts = _grouped(look, claim, (choice, places))
        if parts is None:
            return LaunchRefused(reason="LaunchFailed", message=NO_IMAGE)
        if not parts:
            return NoCapacity(
                message="insufficient capacity, no subnet with free addresses in any zone that is for sale"
            )
        return await self._purchase(claim, node_class, (choice, places, parts))

    def _look(self, node_class: NodeClass, claim: NodeClaim, shelf: tuple[Shelved, ...]) -> _Look:
        """Claims of one plan ask for the same of one shelf, so the look over fourteen hundred types is made once."""
        key = f"{node_class.uid}/{claim.labels.get(core.NODE_POOL, '')}"  # overlays tell pools apart
        look = self._looked.get(key)
        if look is None or look.shelf is not shelf or look.images != node_class.images or len(look.suited) > _KEPT:
            look = self._looked[key] = _Look(shelf=shelf, images=node_class.images)
        if claim.requirements not in look.suited:
            look.suited[claim.requirements] = suited(claim.requirements, shelf)
        return look

    def _places(self, node_class: NodeClass, choice: Choice) -> dict[str, Place]:
        """W-71: the roomiest subnet of each zone; a full one is not offered."""
        subnets, shortages = self._shelves.sources.subnets, self._shelves.sources.shortages
        best: dict[str, tuple[int, str]] = {}
        for subnet in node_class.status.subnets or ():
            room = subnets.room(subnet.id)
            if subnets.is_full(subnet.id) or shortages.subnet_is_short(choice.capacity_type, subnet.id):
                continue
            rank = (-(room or 0), subnet.id)
            if subnet.zone not in best or rank < best[subnet.zone]:
                best[subnet.zone] = rank
        return {zone: (subnet, zone) for zone, (_, subnet) in best.items()}

    async def _purchase(
        self,
        claim: NodeClaim,
        node_class: NodeClass,
        chosen: tuple[Choice, Mapping[str, Place], Mapping[_Part, list[tuple[Item, str, float]]]],
    ) -> Prepared | ClassNotReady | LaunchRefused:
        choice, places, parts = chosen
        settings = self._shelves.sources.settings
        facts = await self._cluster.for_launch(with_cidr=node_class.family == "AL2023")
        if node_class.family == "AL2023" and not facts.service_cidr:
            return ClassNotReady(message="the cluster's service range is not known")
        try:
            tags = class_tags(node_class, settings.cluster, claim.labels.get(core.NODE_POOL, ""))
        except ForbiddenTag as error:
            return ClassNotReady(message=str(error))
        maker = TemplateMaker(
            settings=settings, region=self._region, facts=facts, node_class=node_class, claim=claim, tags=tags
        )
        group = await self._shelves.sources.groups.of_class(node_class)
        partition = partition_for(claim, group)
        order = sorted(places.values())
        try:
            groups = tuple(
                _group(partial(self._names.name, maker), (part, offers), (choice, group, partition, order))
                for part, offers in sorted(parts.items(), key=lambda entry: repr(entry[0]))
            )
        except BadUserData as error:
            return LaunchRefused(
                reason="LaunchFailed", message=f"creating instance, getting launch template configs, {error}"
            )
        purchase = Purchase(
            node_class=node_class.name,
            class_hash=node_class.hash(self._cluster.known.ca_bundle),
            capacity_type=choice.capacity_type,
            tenancy=choice.tenancy,
            profile=node_class.status.instance_profile or "",
            context="" if _relaxed(claim) else node_class.spec.context or "",
            partition=partition,
            overlaid=any(o.overlaid for i in choice.items for o in i.offers),
            tags=tags,
            places=tuple(order),
            groups=groups,
        )
        return Prepared(request=frozen(purchase))


def usable_class(classes: NodeClasses, claim: NodeClaim) -> NodeClass | ClassNotReady | LaunchRefused:
    """W-75."""
    reference = claim.node_class
    found = classes.get(reference.name) if (reference.group, reference.kind) in names.SUPPORTED else None
    if found is None:
        return ClassNotReady(message=f"{reference.kind} {reference.name} does not exist")
    if isinstance(found, UnreadableClass):
        return ClassNotReady(message=found.message)
    if found.deleting:
        return ClassNotReady(message=f"{reference.kind} {reference.name} is being deleted")
    state = found.state
    if found.stale or state.ready == "False":
        return ClassNotReady(message=f"{reference.kind} {reference.name}: {state.message or state.reason}")
    if state.ready == "Unknown":
        return LaunchRefused(reason="NodeClassReadinessUnknown", message=state.message or "its readiness is not known")
    return found


def _grouped(
    look: _Look, claim: NodeClaim, chosen: tuple[Choice, Mapping[str, Place]]
) -> dict[_Part, list[tuple[Item, str, float]]] | None:
    """W-83: (type, zone, price) by what a template must be one of; None where no image suits any type."""
    choice, places = chosen
    parts: dict[_Part, list[tuple[Item, str, float]]] = {}
    any_image = False
    for item in choice.items:
        image = _image_for(look, item.form)
        if not image:
            continue
        any_image = True
        efa = item.form.facts.efa_interfaces if claim.requests.get(names.EFA) else 0
        common = _Part(image=image, max_pods=item.form.sizes.pods, efa=efa, reserved=reserved_amounts(item.form.sizes))
        plain = [(item, o.zone, o.price) for o in item.offers if o.reservation is None and o.zone in places]
        if plain:
            parts.setdefault(common, []).extend(plain)
        for offer in item.offers:
            if offer.reservation is not None and offer.zone in places:
                part = _of_reservation(common, offer.reservation)
                parts.setdefault(part, []).append((item, offer.zone, offer.price))
    return parts if any_image else None


def _of_reservation(common: _Part, reservation: Reservation) -> _Part:
    market = "interruptible-capacity-reservation" if reservation.interruptible else ""
    if reservation.kind == "capacity-block":
        market = "capacity-block"
    return replace(common, reservation_id=reservation.id, market=market)


def _image_for(look: _Look, form: Form) -> str:
    """The first image of status that suits the type; empty where none does."""
    known = look.image_of.get(form.facts.name)
    if known is None:
        suits = (image.id for image in look.images if not conflicts(form.requirements, image.requirements))
        known = look.image_of[form.facts.name] = next(suits, "")
    return known


def _group(
    name_of: Callable[[Terms], str],
    part: tuple[_Part, Iterable[tuple[Item, str, float]]],
    context: tuple[Choice, PlacementGroup | None, str, list[Place]],
) -> Group:
    terms, offers = part
    choice, group, partition, order = context
    template = name_of(
        Terms(
            capacity_type=choice.capacity_type,
            tenancy=choice.tenancy,
            image=terms.image,
            max_pods=terms.max_pods,
            efa=terms.efa,
            reservation_id=terms.reservation_id,
            market=terms.market,
            group_id=group.id if group else "",
            partition=partition,
            reserved=terms.reserved,
        )
    )
    numbers = {zone: number for number, (_, zone) in enumerate(order)}
    rows = {(item.form.facts.name, numbers[zone]): price for item, zone, price in offers}
    return Group(
        template=template,
        image=terms.image,
        max_pods=terms.max_pods,
        efa=terms.efa,
        reservation_id=terms.reservation_id,
        market=terms.market,
        reserved=terms.reserved,
        offers=tuple((name, number, price) for (name, number), price in sorted(rows.items())),
    )


def partition_for(claim: NodeClaim, group: PlacementGroup | None) -> str:
    """The partition that the claim insists on, the lowest number where it leaves several; empty: EC2 chooses."""
    if group is None or not group.partitions:
        return ""
    for expression in claim.requirements:
        if expression.key == names.PARTITION and expression.operator == "In" and expression.values:
            return min(expression.values, key=lambda text: (len(text), text))
    return ""


def _relaxed(claim: NodeClaim) -> bool:
    return claim.annotations.get(core.MIN_VALUES_RELAXED) == "true"
