"""What EC2's answer about a fleet means: an instance, no capacity, or a refused request (AWS-89, AWS-90).

Pure: from the answer to the instance, the shortages to remember and the outcome. Which codes mean a shortage is
upstream's list. The outcome is "no capacity" only if every error means that and something is remembered as short: with
one pool short and another refused for a missing right, or with nothing left out of the next plan, the claim would
otherwise be deleted and made again forever.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from dovetail.adapters.aws.catalogue.shortages import Shortage
from dovetail.adapters.aws.launch.refusal_reasons import NO_ADDRESSES, SPOT_ROLE, SPOT_ROLE_MISSING, reason_for
from dovetail.model import names as core
from dovetail.model.values.json import Json
from dovetail.ports.cloud import LaunchRefused, LaunchWarning, NoCapacity

UNFULFILLABLE: Final = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        NO_ADDRESSES,
        "MaxFleetCountExceeded",
        "SpotMaxPriceTooLow",
        "ReservationCapacityExceeded",
        "InvalidCapacityReservationState.Unavailable",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetError:
    """One error of an answer: which override, and why. `template` is an id: EC2 answers no template's name."""

    code: str
    message: str
    instance_type: str
    zone: str
    subnet: str
    template: str


def read_errors(answer: Json) -> tuple[FleetError, ...]:
    """The errors; an answer with an instance may also have some."""
    found = []
    for raw in answer.get("Errors") or ():
        said = raw.get("LaunchTemplateAndOverrides") or {}
        override = said.get("Overrides") or {}
        found.append(
            FleetError(
                code=raw.get("ErrorCode", ""),
                message=raw.get("ErrorMessage", ""),
                instance_type=override.get("InstanceType", ""),
                zone=override.get("AvailabilityZone", ""),
                subnet=override.get("SubnetId", ""),
                template=(said.get("LaunchTemplateSpecification") or {}).get("LaunchTemplateId", ""),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetInstance:
    """One instance of a fleet; `template` is an id."""

    id: str
    override: Json
    template: str

    @property
    def instance_type(self) -> str:
        return str(self.override.get("InstanceType", ""))

    @property
    def zone(self) -> str:
        return str(self.override.get("AvailabilityZone", ""))


def launched_instances(answer: Json) -> tuple[FleetInstance, ...]:
    """The instances, each once, in an order that is the same whenever the call is repeated."""
    found: dict[str, FleetInstance] = {}
    for entry in answer.get("Instances") or ():
        said = entry.get("LaunchTemplateAndOverrides") or {}
        for identity in entry.get("InstanceIds") or ():
            override = dict(said.get("Overrides") or {})
            override.setdefault("InstanceType", entry.get("InstanceType", ""))
            template = (said.get("LaunchTemplateSpecification") or {}).get("LaunchTemplateId", "")
            found[identity] = FleetInstance(id=identity, override=override, template=template)
    return tuple(found[identity] for identity in sorted(found))


def shortages_of(errors: Iterable[FleetError], capacity_type: str, group: str) -> set[Shortage]:
    """What is not offered again for a while. A full subnet is short for this capacity type only, and what ran short in
    a placement group (`group_scope`, or "") for launches into it: a spread group is full with seven instances a zone,
    when all others may launch there (AWS-73). An error that names neither type nor zone is no shortage: without both
    it would be one of everything."""
    found: set[Shortage] = set()
    for error in errors:
        if error.code == SPOT_ROLE:
            found.add(Shortage(capacity_type=core.CAPACITY_SPOT))
        if error.code == NO_ADDRESSES and error.subnet:
            found.add(Shortage(capacity_type=capacity_type, scope=error.subnet))
        elif capacity_type == core.CAPACITY_RESERVED or not (error.instance_type or error.zone):
            continue
        elif error.code in UNFULFILLABLE:
            pool = Shortage(capacity_type=capacity_type, instance_type=error.instance_type, zone=error.zone)
            found.add(replace(pool, scope=group))
    return found


def warnings_of(errors: Iterable[FleetError]) -> tuple[LaunchWarning, ...]:
    """What people should know, even if an instance was launched (AWS-89, AWS-168): spot is left out as a whole."""
    if any(error.code == SPOT_ROLE for error in errors):
        text = f'Attempted to launch a spot instance but failed due to "{SPOT_ROLE}"'
        return (LaunchWarning(reason=SPOT_ROLE_MISSING, message=text),)
    return ()


def outcome(errors: tuple[FleetError, ...], *, remembered: bool) -> NoCapacity | LaunchRefused:
    """The outcome of a fleet that launched nothing (AWS-90). `remembered`: whether anything is known as short now."""
    text = "; ".join(dict.fromkeys(f"{error.code}: {error.message}" for error in errors))
    if remembered and all(error.code in UNFULFILLABLE or error.code == SPOT_ROLE for error in errors):
        text = f"creating instance, insufficient capacity, with fleet error(s), {text}"
        return NoCapacity(message=text, warnings=warnings_of(errors))
    reason = reason_for((error.code, error.message) for error in errors)
    return LaunchRefused(reason=reason, message=message_for(errors), warnings=warnings_of(errors))


def message_for(errors: Iterable[FleetError]) -> str:
    """For people: the meaning of a bare code."""
    texts = dict.fromkeys(f"{error.code}: {error.message}" for error in errors)
    return "creating instance, with fleet error(s), " + ("; ".join(texts) or "none, and no instance")
