"""Would a launch of this class be allowed (W-40 to W-44)?

Tags and kubelet are judged here; rights, user data and profile by asking EC2: a real launch template, then a fleet and
an instance as dry runs. A verdict holds for half an hour. The trap avoided: a class that no instance type fits;
upstream panics on it, here it is told.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.calls import Calls
from dovetail.adapters.aws.catalogue.offerings import Form
from dovetail.adapters.aws.catalogue.offerings_cache import NoTypes, Shelves
from dovetail.adapters.aws.cluster import Cluster
from dovetail.adapters.aws.failures import NOT_FOUND, UNAUTHORISED, Denied
from dovetail.adapters.aws.instance_types.capacity import machine_of
from dovetail.adapters.aws.kubelet.kubelet_checks import formula_failure, kubelet_verdict
from dovetail.adapters.aws.launch.launch_template_terms import TemplateMaker, Terms, reserved_amounts
from dovetail.adapters.aws.launch.launch_templates import Templates
from dovetail.adapters.aws.launch.template_data import Template, user_data_bytes
from dovetail.adapters.aws.meters import show_user_data
from dovetail.adapters.aws.node_class import conditions as c
from dovetail.adapters.aws.node_class.conditions import Verdict, false, true
from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.aws.settings import AwsSettings
from dovetail.adapters.aws.tags import ForbiddenTag, class_tags, tag_specification
from dovetail.adapters.aws.user_data.bootstrap import BadUserData
from dovetail.adapters.aws.user_data.rendering import SIZE_LIMIT
from dovetail.model import names as core
from dovetail.model.nodes import NodeClaim, NodeClassRef
from dovetail.model.pools import NodePool
from dovetail.model.requirements import conflicts, from_expressions
from dovetail.ports.failures import Permanent, Retryable

Json = dict[str, Any]

KEEP_SECONDS: Final = 1800.0
_WAITING: Final = "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution"
_FALLBACK: Final = ("m5.large", "m6g.large")
_MALFORMED: Final = "InvalidUserData.Malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What the dry runs ask for."""

    node_class: NodeClass
    instance_type: str
    template: Template
    tags: Mapping[str, str]


class Validation:
    """Verdicts, remembered."""

    def __init__(
        self,
        calls: Calls,
        settings: AwsSettings,
        shelves: Shelves,
        made: tuple[Templates, Cluster],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls, self._settings, self._shelves, self._clock = calls, settings, shelves, clock
        self._templates, self._cluster = made
        self._verdicts: dict[str, tuple[str, float, Verdict]] = {}

    async def verdict(
        self, node_class: NodeClass, verdicts: Mapping[str, Verdict], pools: Iterable[NodePool]
    ) -> Verdict:
        """The verdict on a class whose other verdicts these are. Raises Retryable where there is none now."""
        early = await self._before_asking(node_class, verdicts)
        if early is not None:
            return early
        key = _fingerprint(node_class)
        known = self._verdicts.get(node_class.uid)
        if known is not None and known[0] == key and known[1] > self._clock():
            return known[2]
        if self._settings.disable_dry_run:
            return true(c.VALIDATION)
        found = await self._ask(node_class, tuple(pools))
        self._verdicts[node_class.uid] = (key, self._clock() + KEEP_SECONDS, found)
        return found

    async def _before_asking(self, node_class: NodeClass, verdicts: Mapping[str, Verdict]) -> Verdict | None:
        if node_class.family == "AL2023":
            try:
                facts = await self._cluster.for_launch(with_cidr=True)
            except Permanent as failure:
                return false("ClusterCIDRResolutionFailed", str(failure))
            if not facts.service_cidr:
                return false("ClusterCIDRResolutionFailed", "the cluster tells no service range")
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
            forms = await self._shelves.forms(node_class)
        except NoTypes as error:
            return false("NoCompatibleInstanceTypes", str(error))
        machines = [machine_of(form.facts, node_class, self._settings) for form in forms.values()]
        failure = formula_failure(node_class, machines)
        if failure is not None:
            return failure
        form = trial_type(node_class, forms, pools)
        if isinstance(form, str):
            return false("NoCompatibleInstanceTypes", form)
        try:
            trial = await self._trial(node_class, (form, trial_tenancy(node_class, pools)))
        except BadUserData as error:
            return false("UserDataInvalid", str(error))
        show_user_data(node_class.name, user_data_bytes(trial.template.data))
        return (
            await self._make_template(trial) or await self._try_fleet(trial) or await self._try_instance(trial)
        ) or true(c.VALIDATION)

    async def _trial(self, node_class: NodeClass, chosen: tuple[Form, str]) -> _Trial:
        form, tenancy = chosen
        tags = class_tags(node_class, self._settings.cluster, "")
        facts = await self._cluster.for_launch(with_cidr=node_class.family == "AL2023")
        maker = TemplateMaker(
            settings=self._settings,
            region=self._calls.region,
            facts=facts,
            node_class=node_class,
            claim=_NOBODY,
            tags=tags,
        )
        group = await self._shelves.sources.groups.of_class(node_class)
        terms = Terms(
            capacity_type=core.CAPACITY_ON_DEMAND,
            tenancy=tenancy,
            image=_image(node_class, form),
            max_pods=form.sizes.pods,
            reserved=reserved_amounts(form.sizes),
            group_id=group.id if group else "",
        )
        return _Trial(node_class=node_class, instance_type=form.facts.name, template=maker.template(terms), tags=tags)

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
        """EC2's code for an unknown profile is one for many things, so IAM is asked."""
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
        raise Retryable(f"ec2:{operation} (dry run)", f"{denied.code}: {denied.message}")


_NOBODY: Final = NodeClaim(
    name="",
    labels={},
    node_class=NodeClassRef(group="", kind="", name=""),
    requests={},
    capacity={},
    allocatable={},
)


def _interfaces(node_class: NodeClass, subnet: str) -> list[Json]:
    """A run of instances names the subnet on each interface, so each that the class wants must be named."""
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
    return false(f"{operation}AuthCheckFailed", f"Controller isn't authorized to call ec2:{operation}: {cause}")


def trial_type(node_class: NodeClass, forms: Mapping[str, Form], pools: tuple[NodePool, ...]) -> Form | str:
    """W-44: a type of a pool of the class that an image suits; where no pool narrows it, a common one."""
    suited = [forms[name] for name in sorted(forms) if forms[name].suits and forms[name].zones]
    if not suited:
        return "no instance type that the region offers is compatible with the class"
    usable = [form for form in suited if _image(node_class, form)]
    if not usable:
        return "no image of the class suits any compatible instance type"
    ours = [pool for pool in pools if pool.template.node_class.name == node_class.name]
    wanted = [form for form in suited if any(_wants(pool, form) for pool in ours)]
    for form in wanted:
        if _image(node_class, form):
            return form
    if wanted:
        return "no image of the class suits any instance type that its NodePools allow"
    return next((form for form in usable if form.facts.name in _FALLBACK), usable[0])


def trial_tenancy(node_class: NodeClass, pools: tuple[NodePool, ...]) -> str:
    """W-44: dedicated where a pool of the class says that it may be; what says nothing is shared."""
    ours = [pool for pool in pools if pool.template.node_class.name == node_class.name]
    told = [from_expressions(pool.template.requirements).get(names.TENANCY) for pool in ours]
    return "dedicated" if any(each is not None and each.has("dedicated") for each in told) else "default"


def _wants(pool: NodePool, form: Form) -> bool:
    return not conflicts(form.requirements, from_expressions(pool.template.requirements))


def _image(node_class: NodeClass, form: Form) -> str:
    return next((i.id for i in node_class.images if not conflicts(form.requirements, i.requirements)), "")


def _fingerprint(node_class: NodeClass) -> str:
    """What a verdict holds for: spec and what it resolved to."""
    status: Json = node_class.raw.get("status") or {}
    told = {key: status.get(key) for key in ("amis", "subnets", "securityGroups", "instanceProfile")}
    text = json.dumps([node_class.raw_spec, told], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
