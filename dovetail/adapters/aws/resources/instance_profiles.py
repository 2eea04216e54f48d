"""The instance profile of a class: made from its role, or given (AWS-38, AWS-39, AWS-46, AWS-111).

The name follows from class and role, so that a profile whose creation was interrupted is found again instead of made
twice (upstream's names are random), and so that running instances may have what another try finds: only what the very
call has made is taken back. For a missing role no further profile is made for a minute.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.failures import NOT_FOUND, Denied, refusal
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.adapters.aws.tags import as_tags
from dovetail.model import names as core
from dovetail.model.values.hashing import hash_value
from dovetail.ports.failures import Failure, Refused, Unreachable

_log = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 900.0
_MISSING_SECONDS: Final = 60.0
_PROTECTED_SECONDS: Final = 3600.0
_VALID: Final = re.compile(r"[\w+=,.@-]{1,128}\Z", re.ASCII)


class RoleMissing(ValueError):
    """The class's role does not exist."""


class Profiles:
    def __init__(self, calls: Calls, settings: AwsSettings, clock: Callable[[], float]) -> None:
        self._calls, self._settings, self._clock = calls, settings, clock
        self._good: dict[tuple[str, str], float] = {}  # (profile, role) → until when it need not be looked at
        self._missing: dict[str, float] = {}  # role → until when it is taken to be missing
        self._protected: dict[str, float] = {}  # profile → until when it is not collected

    async def of_class(self, node_class: NodeClass) -> str:
        """The profile's name. Raises RoleMissing."""
        if node_class.spec.instance_profile:
            return node_class.spec.instance_profile
        role = (node_class.spec.role or "").rpartition("/")[2]
        if self._missing.get(role, 0.0) > self._clock():
            raise RoleMissing(f"The role with name {role} cannot be found.")
        current = node_class.status.instance_profile or ""
        if current and await self._is_good(current, role):
            return current
        name = self.name_for(node_class, role)
        if name == current or not await self._is_good(name, role):
            await self._make(name, role, node_class)
        for each in filter(None, (name, current)):
            self._protected[each] = self._clock() + _PROTECTED_SECONDS
        self._good[name, role] = self._clock() + _KEPT_SECONDS
        return name

    async def _is_good(self, name: str, role: str) -> bool:
        if self._good.get((name, role), 0.0) > self._clock():
            return True
        if (await self._roles(name) or [])[:1] != [role]:
            return False
        self._good[name, role] = self._clock() + _KEPT_SECONDS
        return True

    async def _roles(self, name: str) -> list[str] | None:
        """The roles in it, at most one; None where there is no such profile."""
        answer = await self._calls.attempt("iam", "GetInstanceProfile", InstanceProfileName=name)
        if isinstance(answer, Denied):
            if answer.code in NOT_FOUND:
                return None
            raise refusal("iam:GetInstanceProfile", answer)
        return [each["RoleName"] for each in answer["InstanceProfile"].get("Roles") or ()]

    async def _make(self, name: str, role: str, node_class: NodeClass) -> None:
        made = await self._calls.attempt(
            "iam",
            "CreateInstanceProfile",
            InstanceProfileName=name,
            Path=self.path(node_class.uid),
            Tags=as_tags(self._tags(node_class)),
        )
        if isinstance(made, Denied) and made.code != "EntityAlreadyExists":
            raise refusal("iam:CreateInstanceProfile", made)
        added = await self._calls.attempt("iam", "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName=role)
        if not isinstance(added, Denied):
            return
        inside = await self._roles(name)
        if inside == [role]:
            return  # another worker was first
        if inside is None:  # IAM does not show it yet, and says the same of a missing role
            raise Unreachable("iam:AddRoleToInstanceProfile", f"{added.code}: {added.message}")
        if not isinstance(made, Denied):
            await self._take_back(name)  # one that was there before may be that of running instances
        if added.code in NOT_FOUND:
            self._missing[role] = self._clock() + _MISSING_SECONDS
            raise RoleMissing(added.message)
        if inside:
            raise Refused(
                "iam:AddRoleToInstanceProfile",
                f"instance profile {name} holds the role {inside[0]}, and EC2NodeClass {node_class.name} names {role}: "
                f"take {inside[0]} out of it, or name it in spec.role",
            )
        raise refusal("iam:AddRoleToInstanceProfile", added)

    async def _take_back(self, name: str) -> None:
        """Delete what was just made; IAM refuses that where another worker has put the role in meanwhile."""
        try:
            await self._delete(name)
        except Failure as failure:
            _log.warning("instance profile %s could not be deleted and is left to the clean-up: %s", name, failure)

    async def delete(self, name: str) -> None:
        """With its roles removed; a missing profile is fine."""
        roles = await self._roles(name)
        if roles is None:
            return
        for role in roles:
            answer = await self._calls.attempt(
                "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=role
            )
            if isinstance(answer, Denied) and answer.code not in NOT_FOUND:
                raise refusal("iam:RemoveRoleFromInstanceProfile", answer)
        await self._delete(name)

    async def _delete(self, name: str) -> None:
        answer = await self._calls.attempt("iam", "DeleteInstanceProfile", InstanceProfileName=name)
        if isinstance(answer, Denied) and answer.code not in NOT_FOUND:
            raise refusal("iam:DeleteInstanceProfile", answer)
        self._good = {key: until for key, until in self._good.items() if key[0] != name}

    async def made_for(self, node_class: NodeClass) -> list[str]:
        """Every profile that may ever have been made for a class, including one named in the old way (AWS-46)."""
        if self._settings.isolated_vpc:
            return []
        legacy = f"{self._settings.cluster}_{hash_value(self._calls.region + node_class.name)}"
        return [*await self._under(self.path(node_class.uid)), *([legacy] if _VALID.match(legacy) else [])]

    async def unused(self, used: frozenset[str]) -> list[str]:
        """What no class and no claim uses (AWS-111)."""
        if self._settings.isolated_vpc:
            return []
        now, made = self._clock(), await self._under(f"/karpenter/{self._calls.region}/{self._settings.cluster}/")
        return [name for name in made if name not in used and self._protected.get(name, 0.0) < now]

    async def _under(self, path: str) -> list[str]:
        rows = await self._calls.every("iam", "ListInstanceProfiles", "InstanceProfiles", PathPrefix=path)
        # moto forgets the prefix, and a profile of another cluster must never be ours to delete.
        return sorted(row["InstanceProfileName"] for row in rows if str(row.get("Path", "")).startswith(path))

    def path(self, uid: str) -> str:
        return f"/karpenter/{self._calls.region}/{self._settings.cluster}/{uid}/"

    def name_for(self, node_class: NodeClass, role: str) -> str:
        text = f"{self._calls.region}/{node_class.uid}/{role}"
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return f"{self._settings.cluster}_{number}"

    def _tags(self, node_class: NodeClass) -> Mapping[str, str]:
        return {
            **(node_class.spec.tags or {}),
            names.owned_tag(self._settings.cluster): "owned",
            names.CLUSTER_TAG: self._settings.cluster,
            names.NODE_CLASS: node_class.name,
            core.REGION: self._calls.region,
        }


class NamedProfiles(Profiles):
    """The profiles of supposed classes: named, but neither made nor looked up."""

    async def of_class(self, node_class: NodeClass) -> str:
        """The name that it would have."""
        role = (node_class.spec.role or "").rpartition("/")[2]
        return node_class.spec.instance_profile or self.name_for(node_class, role)
