"""A launch, worked out and frozen: what `prepare` writes on the claim and `launch` carries out.

Hashes and ids, no user data: whoever reads the claim sees what is to be bought, not what machines are told. The trap
avoided: a repeated call that differs in one price from the first; EC2 then refuses the token, and an instance is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from dovetail.adapters.aws.launch.launch_template_terms import ReservedAmounts

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The offers that one launch template serves. An offer is (instance type, number of the place, price)."""

    template: str
    image: str
    max_pods: int
    efa: int = 0
    reservation_id: str = ""
    market: str = ""
    reserved: ReservedAmounts | None = None
    offers: tuple[tuple[str, int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """One fleet. A place is (subnet, zone)."""

    node_class: str
    class_hash: str
    capacity_type: str
    tenancy: str
    profile: str
    context: str = ""
    partition: str = ""
    overlaid: bool = False
    tags: Mapping[str, str]
    places: tuple[tuple[str, str], ...]
    groups: tuple[Group, ...]

    @property
    def block(self) -> bool:
        """Whether it is bought from a capacity block."""
        return any(group.market == "capacity-block" for group in self.groups)

    @property
    def interruptible(self) -> bool:
        """Whether it is bought from a reservation that may be taken back."""
        return any(group.market == "interruptible-capacity-reservation" for group in self.groups)


class UnreadablePurchase(ValueError):
    """A text that is none of ours, or of a version that we do not know."""


_VERSION = 1


def frozen(purchase: Purchase) -> str:
    """The text, the same for the same purchase."""
    body = {
        "v": _VERSION,
        "class": purchase.node_class,
        "hash": purchase.class_hash,
        "kind": purchase.capacity_type,
        "tenancy": purchase.tenancy,
        "profile": purchase.profile,
        "context": purchase.context,
        "partition": purchase.partition,
        "overlaid": purchase.overlaid,
        "tags": dict(sorted(purchase.tags.items())),
        "places": purchase.places,
        "groups": [_group(group) for group in purchase.groups],
    }
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()


def _group(group: Group) -> Json:
    return {
        "template": group.template,
        "image": group.image,
        "pods": group.max_pods,
        "efa": group.efa,
        "reservation": group.reservation_id,
        "market": group.market,
        **({} if group.reserved is None else {"reserved": [dict(group.reserved.kube), dict(group.reserved.system)]}),
        "offers": group.offers,
    }


def thawed(text: str) -> Purchase:
    """The purchase that a text stands for."""
    try:
        body: Json = orjson.loads(text)
        if body["v"] != _VERSION:
            raise UnreadablePurchase(f"a launch request of version {body['v']}")
        return Purchase(
            node_class=body["class"],
            class_hash=body["hash"],
            capacity_type=body["kind"],
            tenancy=body["tenancy"],
            profile=body["profile"],
            context=body["context"],
            partition=body["partition"],
            overlaid=body["overlaid"],
            tags=body["tags"],
            places=tuple((place[0], place[1]) for place in body["places"]),
            groups=tuple(_read_group(group) for group in body["groups"]),
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadablePurchase(f"not a launch request: {error}") from error


def _read_group(body: Json) -> Group:
    return Group(
        template=body["template"],
        image=body["image"],
        max_pods=body["pods"],
        efa=body["efa"],
        reservation_id=body["reservation"],
        market=body["market"],
        reserved=_read_reserved(body.get("reserved")),
        offers=tuple((offer[0], offer[1], offer[2]) for offer in body["offers"]),
    )


def _read_reserved(body: list[dict[str, str]] | None) -> ReservedAmounts | None:
    if body is None:
        return None
    kube, system = (tuple(sorted(each.items())) for each in body)
    return ReservedAmounts(kube=kube, system=system)
