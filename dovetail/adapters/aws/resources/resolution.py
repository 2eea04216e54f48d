"""What the selectors of a class select, and which conditions follow (AWS-26 to AWS-39, AWS-45, AWS-142).

One round looks at everything, even if a part fails. A part that cannot be looked at now keeps its last verdict, so that
one throttled call does not make a whole class not ready; but none of before the class's latest change. Where upstream
silently stays Unknown (a missing role, an SSM error), the condition is False with the reason.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import Verdict, false, kept, true
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.resources.image_aliases import UnsupportedAlias
from dovetail.adapters.aws.resources.images import FoundImage, ImageError, Images
from dovetail.adapters.aws.resources.instance_profiles import Profiles, RoleMissing
from dovetail.adapters.aws.resources.placement_groups import PlacementGroups
from dovetail.adapters.aws.resources.reservations import Reservation, Reservations
from dovetail.adapters.aws.resources.security_groups import SecurityGroups
from dovetail.adapters.aws.resources.subnets import Subnets
from dovetail.model.values.json import Json
from dovetail.ports.failures import Failure, Permanent

Outcome = tuple[Verdict, Json]  # the verdict, and the fields of status

RESOLUTION_FAILED = "ResolutionFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassResources:
    cluster: Cluster
    images: Images
    subnets: Subnets
    groups: SecurityGroups
    profiles: Profiles
    reservations: Reservations
    placement: PlacementGroups


class _Part(NamedTuple):
    """One condition, its fields of status, and how they are looked up."""

    condition: str
    fields: tuple[str, ...]
    look: Callable[[NodeClass], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What one round found: status fields and verdicts, without validation yet. `failed`: look again soon."""

    fields: Json
    verdicts: dict[str, Verdict]
    failed: tuple[Failure, ...] = ()


class Resolution:
    """Looks at every part of a class."""

    def __init__(self, resources: ClassResources, *, reserved_capacity: bool) -> None:
        self._resources = resources
        self._reserved = reserved_capacity

    async def resolve(self, node_class: NodeClass) -> Resolved:
        """Look at every part at once."""
        parts = [
            _Part(c.IMAGES, ("amis",), self._images),
            _Part(c.PLACEMENT, (), self._placement),
            _Part(c.SUBNETS, ("subnets",), self._subnets),
            _Part(c.GROUPS, ("securityGroups",), self._groups),
            _Part(c.PROFILE, ("instanceProfile",), self._profile),
        ]
        if self._reserved:
            parts.append(_Part(c.RESERVATIONS, ("capacityReservations",), self._reservations))
        done = await asyncio.gather(*[_one(part.look, node_class) for part in parts])
        status: Json = node_class.raw.get("status") or {}
        before = status.get("conditions") or []
        fields: Json = {}
        verdicts: dict[str, Verdict] = {}
        failed: list[Failure] = []
        for (kind, fields_of_part, _), outcome in zip(parts, done, strict=True):
            if isinstance(outcome, Failure):
                failed.append(outcome)
                former = kept(before, kind, node_class.generation, outcome)
                verdicts[kind] = false(RESOLUTION_FAILED, str(outcome)) if isinstance(outcome, Permanent) else former
                fields.update({key: status.get(key) for key in fields_of_part})
            else:
                verdicts[kind], found = outcome
                fields.update({key: found.get(key) for key in fields_of_part})
        return Resolved(fields=fields, verdicts=verdicts, failed=tuple(failed))

    async def _images(self, node_class: NodeClass) -> Outcome:
        try:
            found = await self._resources.images.of_class(node_class, await self._resources.cluster.version())
        except UnsupportedAlias as error:
            return false("UnsupportedAlias", str(error)), {}
        except ImageError as error:
            return false(error.reason, str(error)), {}
        if not found:
            return false("AMINotFound", "AMISelector did not match any AMIs"), {}
        return true(c.IMAGES), {"amis": [_image(image) for image in found]}

    async def _subnets(self, node_class: NodeClass) -> Outcome:
        found = await self._resources.subnets.of_class(node_class)
        if not found:
            return false("SubnetsNotFound", "SubnetSelector did not match any Subnets"), {}
        rows = [{"id": s.id, "zone": s.zone, **({"zoneID": s.zone_id} if s.zone_id else {})} for s in found]
        return true(c.SUBNETS), {"subnets": rows}

    async def _groups(self, node_class: NodeClass) -> Outcome:
        found = await self._resources.groups.of_class(node_class)
        if not found:
            return false("SecurityGroupsNotFound", "SecurityGroupSelector did not match any SecurityGroups"), {}
        return true(c.GROUPS), {"securityGroups": [{"id": group.id, "name": group.name} for group in found]}

    async def _profile(self, node_class: NodeClass) -> Outcome:
        try:
            return true(c.PROFILE), {"instanceProfile": await self._resources.profiles.of_class(node_class)}
        except RoleMissing as error:
            # Its instances may have the profile that it names: what no class names is collected.
            return false("RoleNotFound", str(error)), {"instanceProfile": node_class.status.instance_profile}

    async def _placement(self, node_class: NodeClass) -> Outcome:
        if node_class.spec.placement_group_selector is None:
            return true(c.PLACEMENT), {}
        try:
            found = await self._resources.placement.of_class(node_class)
        except Permanent as failure:
            return false("PlacementGroupResolutionFailed", str(failure)), {}
        if found is None:
            return false("PlacementGroupNotFound", "PlacementGroupSelector did not match any available group"), {}
        return true(c.PLACEMENT), {}

    async def _reservations(self, node_class: NodeClass) -> Outcome:
        found = await self._resources.reservations.of_class(node_class)
        rows = [_reservation(each) for each in found]
        return true(c.RESERVATIONS), {"capacityReservations": rows} if rows else {}


async def _one(look: Callable[[NodeClass], Awaitable[Outcome]], node_class: NodeClass) -> Outcome | Failure:
    try:
        return await look(node_class)
    except Failure as failure:
        return failure


def _image(image: FoundImage) -> Json:
    return {
        "id": image.id,
        "name": image.name,
        **({"deprecated": True} if image.deprecated else {}),
        "requirements": [
            {"key": r.key, "operator": r.operator, **({"values": list(r.values)} if r.values else {})}
            for r in image.requirements
        ],
    }


def _reservation(each: Reservation) -> Json:
    end = None if each.end is None else datetime.fromtimestamp(each.end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": each.id,
        "availabilityZone": each.zone,
        "instanceType": each.instance_type,
        "instanceMatchCriteria": each.criteria,
        "ownerID": each.owner,
        "reservationType": each.kind,
        "state": "expiring" if each.expiring else "active",
        "interruptible": each.interruptible,
        **({"endTime": end} if end else {}),
    }
