"""A launch, worked out and frozen: what `prepare` writes on the claim and `launch` carries out.

Hashes and ids, no user data: readers of the claim see what will be launched, not what instances receive at their start.
It is written down because a repeated call must not differ from the first in a single price: EC2 would refuse the token,
and an instance could be lost. The text outlives upgrades, so its form must not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from dovetail.adapters.aws.launch.launch_terms import FleetTerms, LaunchTerms, ReservedAmounts
from dovetail.model.values.json import Json


class LaunchPlace(NamedTuple):
    subnet: str
    zone: str


class FleetOverride(NamedTuple):
    """One offering that the fleet may use; a launch has hundreds."""

    instance_type: str
    place: int  # its number among the launch's places
    price: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGroup:
    template: str
    terms: LaunchTerms
    overrides: tuple[FleetOverride, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenLaunch:
    node_class: str
    class_hash: str
    fleet: FleetTerms
    profile: str
    context: str = ""
    overlaid: bool = False
    tags: Mapping[str, str]
    places: tuple[LaunchPlace, ...]
    groups: tuple[LaunchGroup, ...]

    @property
    def block(self) -> bool:
        return any(group.terms.market == "capacity-block" for group in self.groups)

    @property
    def interruptible(self) -> bool:
        """Whether it takes an instance of a reservation that may be reclaimed."""
        return any(group.terms.market == "interruptible-capacity-reservation" for group in self.groups)


class UnreadableLaunch(ValueError):
    """A text that is not a frozen launch, or whose version we do not know."""


_VERSION: Final = 1


def write_launch(launch: FrozenLaunch) -> str:
    """The text, the same for the same launch."""
    body = {
        "v": _VERSION,
        "class": launch.node_class,
        "hash": launch.class_hash,
        "kind": launch.fleet.capacity_type,
        "tenancy": launch.fleet.tenancy,
        "profile": launch.profile,
        "context": launch.context,
        "partition": launch.fleet.partition or "",
        "overlaid": launch.overlaid,
        "tags": dict(sorted(launch.tags.items())),
        "places": [tuple(place) for place in launch.places],
        "groups": [_write_group(group) for group in launch.groups],
    }
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()


def _write_group(group: LaunchGroup) -> Json:
    terms = group.terms
    return {
        "template": group.template,
        "image": terms.image,
        "pods": terms.max_pods,
        "efa": terms.efa,
        "reservation": terms.reservation_id or "",
        "market": terms.market or "",
        **({} if terms.reserved is None else {"reserved": [dict(terms.reserved.kube), dict(terms.reserved.system)]}),
        "offers": [tuple(override) for override in group.overrides],
    }


def read_launch(text: str) -> FrozenLaunch:
    """The launch that a text stands for. Raises UnreadableLaunch."""
    try:
        body: Json = orjson.loads(text)
        if body["v"] != _VERSION:
            raise UnreadableLaunch(f"a launch request of version {body['v']}")
        return FrozenLaunch(
            node_class=body["class"],
            class_hash=body["hash"],
            fleet=FleetTerms(capacity_type=body["kind"], tenancy=body["tenancy"], partition=body["partition"] or None),
            profile=body["profile"],
            context=body["context"],
            overlaid=body["overlaid"],
            tags=body["tags"],
            places=tuple(LaunchPlace(place[0], place[1]) for place in body["places"]),
            groups=tuple(_read_group(group) for group in body["groups"]),
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableLaunch(f"not a launch request: {error}") from error


def _read_group(body: Json) -> LaunchGroup:
    terms = LaunchTerms(
        image=body["image"],
        max_pods=body["pods"],
        efa=body["efa"],
        reserved=_read_reserved(body.get("reserved")),
        reservation_id=body["reservation"] or None,
        market=body["market"] or None,
    )
    overrides = tuple([FleetOverride(offer[0], offer[1], offer[2]) for offer in body["offers"]])
    return LaunchGroup(template=body["template"], terms=terms, overrides=overrides)


def _read_reserved(body: list[dict[str, str]] | None) -> ReservedAmounts | None:
    if body is None:
        return None
    kube, system = (tuple(sorted(each.items())) for each in body)
    return ReservedAmounts(kube=kube, system=system)
