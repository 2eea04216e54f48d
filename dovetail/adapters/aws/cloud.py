"""The port Cloud over EC2: prepare, launch, find, terminate, list.

EC2's list may not yet show an instance that was launched a second ago, so no launch is skipped or repeated because of
the list: only the launch token keeps a repeated call from launching another.
"""

from dataclasses import dataclass, replace
from typing import Literal

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.offerings_cache import OfferingsCache
from dovetail.adapters.aws.failures import Denied, refusal
from dovetail.adapters.aws.instance_types.sized_types import SizedType
from dovetail.adapters.aws.instances.instance import InstanceFacts, instance_id, instance_of, is_zone_of, zone_of
from dovetail.adapters.aws.instances.inventory import Inventory
from dovetail.adapters.aws.instances.terminations import Terminations
from dovetail.adapters.aws.launch.fleet_request import LaunchAttempt
from dovetail.adapters.aws.launch.frozen_launch import UnreadableLaunch, read_launch
from dovetail.adapters.aws.launch.launch import Launcher
from dovetail.adapters.aws.launch.prepare_launch import LaunchPreparer, unresolved_class
from dovetail.adapters.aws.meters import count
from dovetail.adapters.aws.node_class.node_class import NodeClass, NodeClasses
from dovetail.adapters.aws.sized_instances import SizedInstances
from dovetail.lifecycle.launch_requests import GroupShare
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim
from dovetail.ports.cloud import ClassNotReady, Instance, LaunchRefused, NoCapacity, Prepared
from dovetail.ports.failures import Failure, Misconfigured, NotAsked, Postponed, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    calls: Calls
    classes: NodeClasses
    offerings: OfferingsCache
    inventory: Inventory
    preparer: LaunchPreparer
    launcher: Launcher
    sized: SizedInstances


class AwsCloud:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._terminations = Terminations(parts.calls)
        self._leaving: dict[str, str] = {}  # instances of reservations that are being terminated

    async def prepare(self, claim: NodeClaim) -> Prepared | NoCapacity | ClassNotReady | LaunchRefused:
        return await self._parts.preparer.prepare(claim)

    async def launch(
        self, claim: NodeClaim, request: str, token: str, share: GroupShare | None = None
    ) -> Instance | NoCapacity | ClassNotReady | LaunchRefused:
        try:
            launch = read_launch(request)
        except UnreadableLaunch as error:
            return LaunchRefused(reason="LaunchRequestUnreadable", message=str(error))
        node_class = self._parts.classes.get(launch.node_class)
        if not isinstance(node_class, NodeClass):
            # An attempt that was cut off may have launched an instance; it carries the claim's UID and is collected.
            return unresolved_class(f"{names.KIND} {launch.node_class} does not exist")
        attempt = LaunchAttempt(claim=claim, node_class=node_class, launch=launch, token=token, share=share)
        return await self._parts.launcher.launch(attempt)

    async def find(self, claim_uid: str = "", provider_id: str = "") -> Instance | None:
        if not provider_id:
            facts = await self._parts.inventory.of_claim(claim_uid)
        else:
            identity = instance_id(provider_id)
            if not identity:
                return None
            self._check_place(provider_id)
            known = self._parts.inventory.last_seen(identity) if self._is_shifted(provider_id) else None
            facts = known or await self._parts.inventory.live(identity)
        return None if facts is None else await self._described(facts)

    async def terminate(self, provider_id: str, claim: str = "") -> Literal["terminating", "gone"]:
        identity = instance_id(provider_id)
        if not identity:
            # Never launched, or somebody wrote another's id: what its claim did launch carries the claim's UID, and is
            # collected as an instance without a claim.
            return "gone"
        self._check_place(provider_id)
        if self._is_shifted(provider_id):
            # No call at all: EC2's answers about such a zone are not to be relied on (AWS-106).
            raise Postponed("ec2:TerminateInstances", f"traffic is shifted away from the zone of {provider_id}")
        facts = await self._parts.inventory.live(identity)
        if facts is None:
            self._given_back(identity)
            return "gone"
        if facts.reservation_id:
            self._leaving[identity] = facts.reservation_id
        if facts.state != "shutting-down" and not self._terminations.is_accepted(identity):
            self._check_owner(facts, claim, "terminated")
            try:
                await self._terminations.terminate(identity)
            except Failure:
                place = {"zone": facts.zone, "zone_id": facts.zone_id}
                count("cloudprovider_instance_termination_failures_total", place)
                raise
        return "terminating"

    def _given_back(self, identity: str) -> None:
        """Its reservation has its place back once it is gone, and not while it shuts down: EC2 would refuse a launch
        into it until then."""
        reservation = self._leaving.pop(identity, "")
        if reservation:
            self._parts.offerings.sources.reservations.ended(reservation)

    async def reboot(self, provider_id: str, claim: str = "") -> None:
        """EC2 answers at once, and treats a second request for a rebooting instance as the same one."""
        identity = instance_id(provider_id)
        if not identity:
            raise Refused(f"NodeClaim/{claim}", f"status.providerID names no instance: {provider_id[:100]!r}")
        self._check_place(provider_id)
        if self._is_shifted(provider_id):
            raise NotAsked("ec2:RebootInstances", f"traffic is shifted away from the zone of {provider_id}")
        facts = await self._parts.inventory.live(identity)
        if facts is None or facts.state != "running":
            raise Postponed("ec2:RebootInstances", f"instance {identity} does not run")
        self._check_owner(facts, claim, "rebooted")
        answer = await self._parts.calls.attempt("ec2", "RebootInstances", InstanceIds=[identity])
        if isinstance(answer, Denied):
            raise refusal("ec2:RebootInstances", answer)

    def _check_place(self, provider_id: str) -> None:
        """EC2 knows only the instances of its own region: asked elsewhere, every instance would seem to be gone, and
        its finalizer would be removed while it still runs."""
        region, zone = self._parts.calls.region, zone_of(provider_id)
        if not is_zone_of(zone, region):
            raise Misconfigured("AWS_REGION", f"it is {region}, but {provider_id} is an instance in zone {zone}")

    def _check_owner(self, facts: InstanceFacts, claim: str, done: str) -> None:
        """What is terminated or rebooted must belong to this cluster and to the claim in question: a providerID is only
        a text in a status. The tags are those of the look-up with which both calls begin."""
        cluster = self._parts.offerings.sources.settings.cluster
        if facts.tags.get(names.owned_tag(cluster)) != "owned" and facts.tags.get(names.CLUSTER_TAG) != cluster:
            raise Refused(
                f"instance {facts.id}", f"it lacks the tags of cluster {cluster} and is not {done}; see its tags"
            )
        if self._parts.inventory.is_foreign(facts):
            theirs = facts.tags[core.CLUSTER_UID_TAG]
            raise Refused(
                f"instance {facts.id}",
                f"its tag {core.CLUSTER_UID_TAG} says that it is of the cluster with the UID {theirs}, and this one's "
                f"is {self._parts.inventory.cluster_uid}; it is not {done}",
            )
        tagged = facts.tags.get(names.CLAIM_TAG, "")
        if claim and tagged and tagged != claim:
            raise Refused(
                f"NodeClaim/{claim}",
                f"status.providerID names instance {facts.id}, whose tag {names.CLAIM_TAG} says {tagged}; "
                f"it is not {done}",
            )

    async def list_instances(self) -> tuple[Instance, ...]:
        return tuple([await self._described(facts) for facts in await self._parts.inventory.every()])

    def _is_shifted(self, provider_id: str) -> bool:
        return zone_of(provider_id) in self._parts.offerings.shifted

    async def _described(self, facts: InstanceFacts) -> Instance:
        node_class = self._parts.classes.get(facts.tags.get(names.NODE_CLASS, ""))
        sized: SizedType | None = None
        annotations: dict[str, str] = {}
        if isinstance(node_class, NodeClass):
            sized = await self._parts.sized.of(facts, node_class)
            if facts.tags.get(core.CLAIM_UID_TAG) and facts.profile:
                annotations = {names.PROFILE_NAME: facts.profile}
            group = self._parts.offerings.sources.groups.known(node_class)
            if group is not None and group.partitions and group.id == facts.group_id and not facts.partition:
                facts = replace(facts, partitioned=True)
                annotations[core.REGISTRATION_HOOK] = names.PARTITION_HOOK
        return instance_of(facts, sized, annotations)
