"""Nodes of one capacity reservation, of which one at a time may leave before its replacement is made (DIS-201 to
DIS-204)."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.model.places.reservations import may_become, reservation_in, reservation_of
from dovetail.model.pools import Catalogue, InstanceType, Offering
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.model.scheduling.requirements import from_expressions
from dovetail.model.snapshot import Snapshot
from dovetail.notices.publishable import is_young


def full_reservation(candidate: Candidate) -> str:
    """The id of its reservation, if only a node that leaves gives an instance of that back; empty otherwise."""
    mine = set(reservation_in(candidate.member.labels).values())
    offerings = candidate.instance_type.offerings if candidate.instance_type is not None else ()
    return next((found for each in offerings if each.full and (found := _of(each)) in mine), "")


def others_first(fleet: Fleet, candidate: Candidate, freed: Set[str]) -> Block | None:
    """Why it does not leave first yet: another node of its reservation is away, or not up yet. `freed`: reservations of
    which a node leaves by the same plan."""
    label = reservation_in(candidate.member.labels)
    if not freed.isdisjoint(label.values()):
        return waits(WhyNot.RESERVATION_FULL, "another node of its reservation does")
    sharing = (member for member in fleet.members if _shares(fleet, member, label))
    return awaited(fleet, sharing, candidate, WhyNot.RESERVATION_FULL)


def awaited(fleet: Fleet, others: Iterable[Member], candidate: Candidate, why: WhyNot) -> Block | None:
    """Which of the others is away, or not up yet. One that is to be repaired and was never up does not count where one
    is repaired: each would wait for the other for ever. An Event names one that should be up by now."""
    sick = fleet.faults if candidate.fault is not None else {}
    for member in others:
        if member is candidate.member:
            continue
        if fleet.is_leaving(member):
            return waits(why, f"{member.name} is leaving")
        if not member.is_initialized and member.name not in sick:
            lasts = member.claim is not None and not is_young(member.claim, fleet.now)
            return waits(why, f"{member.name} is not up yet", lasts=lasts)
    return None


def waits(why: WhyNot, message: str, *, lasts: bool = False) -> Block:
    """What a node that is to leave first waits for."""
    return Block(why=why, message=f"No node leaves first: {message}", event="DisruptionBlocked" if lasts else None)


def _shares(fleet: Fleet, member: Member, label: Mapping[str, str]) -> bool:
    """Whether it has an instance of that reservation, or may take one."""
    if reservation_in(member.labels) == label:
        return True
    return member.claim is not None and may_become(member.claim, label, fleet.settings.well_known)


def with_one_more(snapshot: Snapshot, reservation: str) -> Snapshot:
    """The same cluster if the reservation had one more instance left."""
    found = {
        name: replace(catalogue, types=tuple(_type_with(each, reservation) for each in catalogue.types))
        for name, catalogue in snapshot.catalogues.items()
    }
    return replace(snapshot, catalogues=dict[str, Catalogue](found))


def _type_with(source: InstanceType, reservation: str) -> InstanceType:
    if not any(_of(each) == reservation for each in source.offerings):
        return source
    return replace(source, offerings=tuple(_offering_with(each, reservation) for each in source.offerings))


def _offering_with(offering: Offering, reservation: str) -> Offering:
    if _of(offering) != reservation:
        return offering
    available, left = offering.available or offering.full, max(0, offering.reservation_capacity) + 1
    return replace(offering, available=available, reservation_capacity=left, full=False)


def _of(offering: Offering) -> str | None:
    return reservation_of(from_expressions(offering.requirements))
