"""Whether a launch of a class would be allowed (AWS-40 to AWS-44).

Tags and kubelet are checked here; rights, user data and profile by asking EC2: a real launch template, then a fleet and
an instance as dry runs. Where they pass, or a right is missing, the verdict is valid for half an hour. Every other
refusal is looked at again each minute, because what causes it may be put right elsewhere: a profile in IAM, a NodePool.
While it lasts, that costs an EC2NodeClass none to two calls a minute; one whose instance profile is missing, two and
one for each of its subnets. An annotation of the EC2NodeClass that changes asks for a new verdict at once.

A class that no instance type fits is refused with that reason, where upstream panics.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, OfferingsCache
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.failures import NOT_FOUND, TEMPLATE_MISSING, UNAUTHORISED, Denied
from dovetail.adapters.aws.instance_types.capacity import formula_inputs
from dovetail.adapters.aws.kubelet.kubelet_checks import formula_failure, kubelet_verdict
from dovetail.adapters.aws.launch.launch_templates import LaunchTemplates
from dovetail.adapters.aws.launch.launch_terms import FleetTerms, LaunchTerms, reserved_amounts
from dovetail.adapters.aws.launch.template_data import Template, user_data_bytes
from dovetail.adapters.aws.launch.template_maker import TemplateMaker
from dovetail.adapters.aws.meters import show_user_data
from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import Verdict, false, true
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.tags import ForbiddenTag, class_tags, tag_specification
from dovetail.adapters.aws.upkeep.trial_type import TrialType, trial_tenancy, trial_type
from dovetail.adapters.aws.user_data.bootstrap import BadUserData
from dovetail.adapters.aws.user_data.rendering import NEARLY_FULL, SIZE_LIMIT
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pools import NodePool
from dovetail.model.values.json import Json
from dovetail.ports.failures import Permanent, Retryable

_log = logging.getLogger(__name__)

KEEP_SECONDS: Final = 1800.0
_WAITING: Final = "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution"
_SELECTORS: Final = frozenset(
    ("amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms", "capacityReservationSelectorTerms")
)
_RIGHT_MISSING: Final = "AuthCheckFailed"  # ends the reason
_MALFORMED: Final = "InvalidUserData.Malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What the dry runs request."""

    node_class: NodeClass
    instance_type: str
    template: Template
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    """A verdict, its inputs, and until when it is valid."""

    fingerprint: str
    until: float
    verdict: Verdict


class _TemplateGone(Retryable):
    """The trial's launch template is not there, though it was a moment ago."""


class Validation:
    def __init__(
        self,
        calls: Calls,
        offerings: OfferingsCache,
        templates: LaunchTemplates,
        cluster: Cluster,
        clock: Callable[[], float],
    ) -> None:
        self._calls, self._offerings, self._clock = calls, offerings, clock
        self._settings = offerings.sources.settings
        self._templates, self._cluster = templates, cluster
        self._verdicts: dict[str, _Remembered] = {}

    async def verdict(
        self, node_class: NodeClass, verdicts: Mapping[str, Verdict], pools: Iterable[NodePool]
    ) -> Verdict:
        """The verdict on a class with these other verdicts. Raises Retryable if there is none now."""
        early = await self._before_asking(node_class, verdicts)
        if early is not None:
            return early
        key = _fingerprint(node_class)
        known = self._verdicts.get(node_class.uid)
        if known is not None and known.fingerprint == key and known.until > self._clock():
            return known.verdict
        if self._settings.disable_dry_run:
            return true(c.VALIDATION)
        found = await self._ask(node_class, tuple(pools))
        if found.status == "True" or found.reason.endswith(_RIGHT_MISSING):
            until = self._clock() + KEEP_SECONDS
            self._verdicts[node_class.uid] = _Remembered(fingerprint=key, until=until, verdict=found)
        return found

    async def _before_asking(self, node_class: NodeClass, verdicts: Mapping[str, Verdict]) -> Verdict | None:
        if node_class.family == "AL2023":
            try:
                facts = await self._cluster.for_launch(with_cidr=True)
            except Permanent as failure:
                return false("ClusterCIDRResolutionFailed", str(failure))
            if not facts.service_cidr:
                return false("ClusterCIDRResolutionFailed", "the cluster names no service range")
        refused = kubelet_verdict(node_class, expressions=self._settings.expressions)
        if refused is not None:
            return refused
        states = {verdicts[kind].status for kind in c.DEPENDENCIES}
        if "False" in states:
            return false("DependenciesNotReady", _WAITING)
        if "Unknown" in states:
            return Verdict(status="Unknown", reason="DependenciesNotReady", message=_WAITING)
        try:
            class_tags(node_class, self._settings.cluster, "")
        except ForbiddenTag as error:
            return false("TagValidationFailed", str(error))
        return None

    async def _ask(self, node_class: NodeClass, pools: tuple[NodePool, ...]) -> Verdict:
        try:
            types = await self._offerings.sized_types(node_class)
        except NoTypes as error:
            return false("NoCompatibleInstanceTypes", str(error))
        inputs = [formula_inputs(sized.facts, node_class, self._settings) for sized in types.values()]
        failure = formula_failure(node_class, inputs)
        if failure is not None:
            return failure
        chosen = trial_type(node_class, types, pools)
        if isinstance(chosen, Verdict):
            return chosen
        try:
            trial = await self._trial(node_class, chosen, trial_tenancy(node_class, pools))
        except BadUserData as error:
            return false("UserDataInvalid", str(error))
        _show_size(node_class.name, user_data_bytes(trial.template.data))
        try:
            found = await self._tried(trial)
        except _TemplateGone:
            # Deleted by someone: made again, once, as for a launch.
            self._templates.forget(trial.template.name)
            found = await self._tried(trial)
        return found or true(c.VALIDATION)

    async def _tried(self, trial: _Trial) -> Verdict | None:
        return await self._make_template(trial) or await self._try_fleet(trial) or await self._try_instance(trial)

    async def _trial(self, node_class: NodeClass, chosen: TrialType, tenancy: str) -> _Trial:
        sized = chosen.sized
        tags = class_tags(node_class, self._settings.cluster, "")
        facts = await self._cluster.for_launch(with_cidr=node_class.family == "AL2023")
        group = await self._offerings.sources.groups.of_class(node_class)
        maker = TemplateMaker(
            settings=self._settings,
            region=self._calls.region,
            facts=facts,
            node_class=node_class,
            claim=_NO_CLAIM,
            tags=tags,
            fleet=FleetTerms(capacity_type=core.CAPACITY_ON_DEMAND, tenancy=tenancy),
            group_id=group.id if group else None,
        )
        terms = LaunchTerms(image=chosen.image, max_pods=sized.sizes.pods, reserved=reserved_amounts(sized.sizes))
        return _Trial(node_class=node_class, instance_type=sized.facts.name, template=maker.template(terms), tags=tags)

    async def _make_template(self, trial: _Trial) -> Verdict | None:
        if await self._templates.exists(trial.template.name):
            return None
        denied = await self._templates.make(trial.template)
        if denied is None:
            return None
        if denied.code in UNAUTHORISED:
            return _unauthorised("CreateLaunchTemplate", denied)
        if denied.code == _MALFORMED or user_data_bytes(trial.template.data) > SIZE_LIMIT:
            text = "ec2:CreateLaunchTemplate rejected the rendered user data as too large (16 KiB at most)"
            return false("UserDataSizeLimitExceeded", f"{text}: {denied.message}")
        raise Retryable("ec2:CreateLaunchTemplate", f"{denied.code}: {denied.message}")

    async def _try_fleet(self, trial: _Trial) -> Verdict | None:
        kinds = ("instance", "volume", "fleet")
        denied = await self._calls.dry_run(
            "CreateFleet",
            Type="instant",
            TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
            OnDemandOptions={"AllocationStrategy": "lowest-price"},
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": trial.template.name, "Version": "$Latest"},
                    "Overrides": [
                        {"InstanceType": trial.instance_type, "SubnetId": subnet.id}
                        for subnet in trial.node_class.status.subnets or ()
                    ],
                }
            ],
            TagSpecifications=[tag_specification(kind, trial.tags) for kind in kinds],
        )
        return None if denied is None else self._refused("CreateFleet", denied)

    async def _try_instance(self, trial: _Trial) -> Verdict | None:
        """Each subnet until one is allowed; the first one's refusal counts."""
        kinds = ("instance", "volume", "network-interface")
        first: Denied | None = None
        for subnet in trial.node_class.status.subnets or ():
            denied = await self._calls.dry_run(
                "RunInstances",
                MinCount=1,
                MaxCount=1,
                InstanceType=trial.instance_type,
                LaunchTemplate={"LaunchTemplateName": trial.template.name, "Version": "$Latest"},
                NetworkInterfaces=_interfaces(trial.node_class, subnet.id),
                TagSpecifications=[tag_specification(kind, trial.tags) for kind in kinds],
            )
            if denied is None:
                return None
            first = first or denied
        if first is None:
            return None
        missing = await self._missing_profile(trial.node_class, first)
        return missing or self._refused("RunInstances", first)

    async def _missing_profile(self, node_class: NodeClass, denied: Denied) -> Verdict | None:
        """EC2's code for an unknown profile has many meanings, so IAM is asked."""
        profile = node_class.spec.instance_profile
        if denied.code != "InvalidParameterValue" or not profile:
            return None
        answer = await self._calls.attempt("iam", "GetInstanceProfile", InstanceProfileName=profile)
        if isinstance(answer, Denied) and answer.code in NOT_FOUND:
            return false("InstanceProfileNotFound", f'Instance profile "{profile}" not found')
        return None

    def _refused(self, operation: str, denied: Denied) -> Verdict:
        if denied.code in UNAUTHORISED:
            return _unauthorised(operation, denied)
        failure = _TemplateGone if denied.code == TEMPLATE_MISSING else Retryable
        raise failure(f"ec2:{operation} (dry run)", f"{denied.code}: {denied.message}")


def _show_size(node_class: str, size: int) -> None:
    show_user_data(node_class, size)
    if size >= NEARLY_FULL:
        _log.warning("EC2NodeClass %s: its user data has %d bytes, of which EC2 takes %d", node_class, size, SIZE_LIMIT)


_NO_CLAIM: Final = NodeClaim(
    name="",
    labels={},
    node_class=NodeClassRef(group="", kind="", name=""),
    requests={},
    capacity={},
    allocatable={},
)


def _interfaces(node_class: NodeClass, subnet: str) -> list[Json]:
    """RunInstances names the subnet on each interface, so each interface that the class wants must be named."""
    wanted = node_class.spec.network_interfaces
    if not wanted:
        return [{"DeviceIndex": 0, "SubnetId": subnet}]
    return [
        {
            "NetworkCardIndex": each.network_card_index,
            "DeviceIndex": each.device_index,
            "InterfaceType": each.interface_type,
            "SubnetId": subnet,
        }
        for each in wanted
    ]


def _unauthorised(operation: str, denied: Denied) -> Verdict:
    cause = "User is not authorized to perform this operation"
    # The code is one for all causes; for people the policy that forbids it is worth a look at the text.
    if "explicit deny in a service control policy" in denied.message:
        cause += " due to a service control policy"
    elif "explicit deny in a permissions boundary" in denied.message:
        cause += " due to a permission boundary"
    return false(f"{operation}{_RIGHT_MISSING}", f"Controller isn't authorized to call ec2:{operation}: {cause}")


def _fingerprint(node_class: NodeClass) -> str:
    """The inputs of a verdict: the spec, and what its selectors resolved to; not the selectors themselves (AWS-41). And
    people's annotations: with a new one they ask for a new verdict."""
    status: Json = node_class.raw.get("status") or {}
    resolved = {key: status.get(key) for key in ("amis", "subnets", "securityGroups", "instanceProfile")}
    spec = {key: value for key, value in node_class.raw_spec.items() if key not in _SELECTORS}
    text = json.dumps([node_class.family, spec, resolved, node_class.own_annotations], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
