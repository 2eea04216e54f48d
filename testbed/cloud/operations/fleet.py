"""CreateFleet (instant) and RunInstances: the two ways to launch, and what AWS answers when there is no capacity.

The fleet tries its overrides in the order of its allocation strategy, notes one error per failing override, and
launches all of the target in the first that works. moto always takes the first override and knows no errors (MOT-7,
MOT-8), so insufficient capacity could not be tested with it at all.
"""

from math import inf
from operator import itemgetter
from typing import Final
from uuid import uuid4

from testbed.cloud.http import filters
from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json
from testbed.cloud.operations import launching, limits
from testbed.cloud.operations.instance_answers import describe_instance
from testbed.cloud.operations.launching import Order, Pool
from testbed.cloud.operations.templates import check_user_data, user_data_of
from testbed.cloud.settings import ACCOUNT
from testbed.cloud.state.cloud import Cloud, Operations, Work
from testbed.cloud.state.instances import Instance

RESERVED_SHARE = 10_000_000  # a reserved offering costs this part of on-demand (AWS-146)
SHORT = "There is no capacity available."


# By capacity type: the parameter that names the strategy, and whether the overrides' priorities count under it. What
# EC2's guide says of depth of capacity means nothing here: a pool has room or a declared shortage, so price decides.
STRATEGIES = {
    "on-demand": ("OnDemandOptions", {"lowest-price": False, "prioritized": True}),
    "spot": (
        "SpotOptions",
        {
            "lowest-price": False,
            "diversified": False,
            "capacity-optimized": False,
            "capacity-optimized-prioritized": True,
            "price-capacity-optimized": False,
        },
    ),
}


def _price(cloud: Cloud, pool: Pool) -> float:
    """The world's price; what has none is the dearest."""
    on_demand = cloud.world.on_demand_price(pool.type)
    price = cloud.world.spot_price(pool.type, pool.zone) if pool.capacity_type == "spot" else on_demand
    if price is None:
        return inf
    return price / RESERVED_SHARE if pool.capacity_type == "reserved" else price


def _counts_priorities(work: Work, wanted: str) -> bool:
    """Whether the call's strategy goes by priority. One that its capacity type does not have refuses the call."""
    options, known = STRATEGIES.get(wanted, ("", {}))
    strategy = (work.params.get(options) or {}).get("AllocationStrategy", "lowest-price")
    if known and strategy not in known:
        raise AwsError("InvalidParameterValue", f"The {wanted} allocation strategy '{strategy}' is not valid.")
    return known.get(strategy, False) and work.world["fleetOrder"] == "strategy"


MOST_CONFIGS: Final = 50  # FleetLaunchTemplateConfigListRequest of EC2's model


class Fleet:
    """One CreateFleet request: its candidates in the order in which they are tried, and what came of them."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.cloud = work.cloud
        params = work.params
        target = params["TargetCapacitySpecification"]
        self.target = int(target["TotalTargetCapacity"])
        self.wanted = target.get("DefaultTargetCapacityType", "on-demand")
        self.prioritized = _counts_priorities(work, self.wanted)
        self.errors: list[Json] = []
        self.launched: list[Json] = []
        self.refused: list[Json] = []  # these two for the ledger
        self.made: list[Json] = []

    def candidates(self) -> list[tuple[Json, Json, Order]]:
        """(template specification, override, order), the first choice first; a missing template refuses the call.

        AWS answers the template's id and version, also where the request gave its name."""
        reservation = f"r-{self.cloud.instances.next_number:017x}"
        found = []
        configs = self.work.params.get("LaunchTemplateConfigs") or ()
        if len(configs) > MOST_CONFIGS:
            text = f"The request has {len(configs)} LaunchTemplateConfigs; the maximum is {MOST_CONFIGS}."
            raise AwsError("InvalidParameterValue", text)
        if self.work.params.get("Type") != "instant":
            overrides = [each for config in configs for each in config.get("Overrides") or ()]
            limits.check_count(overrides, limits.MOST_OVERRIDES, "overrides")
        for config in configs:
            specification = config.get("LaunchTemplateSpecification") or {}
            limits.check_template_specification(specification)
            if not specification.get("Version"):
                raise AwsError("MissingParameter", "A launch template version must be specified")
            template = self.cloud.templates.find(
                specification.get("LaunchTemplateName"), specification.get("LaunchTemplateId")
            )
            for override in config.get("Overrides") or [{}]:
                order = self._order(template.data, override, reservation)
                priority = float(override.get("Priority", inf)) if self.prioritized else 0.0
                key = (priority, _price(self.cloud, order.pool), order.pool.type, order.pool.zone, order.subnet)
                found.append((key, {"LaunchTemplateId": template.id, "Version": "1"}, override, order))
        if not found:
            raise AwsError("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
        return [
            (specification, override, order) for _, specification, override, order in sorted(found, key=itemgetter(0))
        ]

    def _order(self, data: Json, override: Json, reservation: str) -> Order:
        plain = {key: override[key] for key in ("InstanceType", "SubnetId", "ImageId") if override.get(key)}
        data = {**data, **plain}
        subnet = launching.subnet_for(self.cloud, data, override.get("AvailabilityZone"))
        kind = launching.capacity_type_of(data, self.wanted)
        return Order(
            data=data,
            pool=Pool(type=data.get("InstanceType", ""), zone=subnet["zone"], capacity_type=kind, asked_as=self.wanted),
            subnet=subnet["id"],
            tags=launching.tags_from(data, self.work.params.get("TagSpecifications")),
            reservation=reservation,
            volume_tags=filters.tags_for(self.work.params.get("TagSpecifications"), "volume"),
            client_token=self.work.params.get("ClientToken"),
        )

    def carry_out(self, candidates: list[tuple[Json, Json, Order]]) -> None:
        """Launch all of the target in the first candidate that works."""
        most = self.cloud.world["fleetMax"]
        count = self.target if most is None else min(self.target, int(most))
        for specification, override, order in candidates:
            said = {
                "LaunchTemplateSpecification": specification,
                "Overrides": override,  # as asked: what the call left out is not in it
            }
            try:
                limits.check_specified(order.data.get("TagSpecifications"), self.work.params.get("TagSpecifications"))
                launching.check(self.cloud, order)
                launching.check_room(self.cloud, order)
            except AwsError as refused:
                self._refused(said, refused, order)
                continue
            made = [launching.launch(self.cloud, order) for _ in range(count)]
            self._note_launched(said, order, made)
            if count < self.target:
                self._refused(said, AwsError("InsufficientInstanceCapacity", SHORT), order)
            return

    @property
    def _lifecycle(self) -> str:
        return "spot" if self.wanted == "spot" else "on-demand"

    def _refused(self, said: Json, error: AwsError, order: Order) -> None:
        self.refused.append({"code": error.code, "type": order.pool.type, "zone": order.pool.zone})
        self.errors.append(
            {
                "LaunchTemplateAndOverrides": said,
                "Lifecycle": self._lifecycle,
                "ErrorCode": error.code,
                "ErrorMessage": error.message,
            }
        )

    def _note_launched(self, said: Json, order: Order, made: list[Instance]) -> None:
        self.made.append({"ids": [each.id for each in made], "type": order.pool.type, "zone": order.pool.zone})
        self.launched.append(
            {
                "LaunchTemplateAndOverrides": said,
                "Lifecycle": self._lifecycle,
                "InstanceIds": [each.id for each in made],
                "InstanceType": order.pool.type,
                "AvailabilityZone": order.pool.zone,
                "AvailabilityZoneId": self.cloud.world["zones"].get(order.pool.zone),
                "SubnetId": order.subnet,
            }
        )

    def notes(self) -> Json:
        """What the ledger says of it."""
        return {
            "instances": [each for entry in self.made for each in entry["ids"]],
            "output": {"instances": self.made, "errors": self.refused},
        }


def create_fleet(work: Work) -> Json:
    """Type instant answers with what it launched; other types answer with a fleet id only."""
    params, tokens = work.params, work.cloud.tokens
    if not params.get("DryRun"):
        before = tokens.first_answer("CreateFleet", params)
        if before is not None:
            work.notes |= {**before[1], "replayed": True}
            return before[0]
    fleet = Fleet(work)
    candidates = fleet.candidates()
    for _, _, order in candidates:
        check_user_data(order.data)
    work.effect_begins()
    fleet.carry_out(candidates)
    answer: Json = {"FleetId": f"fleet-{uuid4()}"}
    if params.get("Type") == "instant":
        answer |= {"Instances": fleet.launched, "Errors": fleet.errors}
    notes = fleet.notes()
    tokens.remember("CreateFleet", params, (answer, notes))
    work.notes |= notes
    return answer


def _merged_with_template(work: Work) -> Json:
    params = work.params
    data = {key: value for key, value in params.items() if key not in ("DryRun", "ClientToken", "TagSpecifications")}
    specification = params.get("LaunchTemplate")
    if not specification:
        return data
    template = work.cloud.templates.find(specification.get("LaunchTemplateName"), specification.get("LaunchTemplateId"))
    merged = {**template.data, **data}
    interfaces = [
        {**old, **new}
        for old, new in zip(
            template.data.get("NetworkInterfaces") or [{}], params.get("NetworkInterfaces") or [{}], strict=False
        )
    ]
    return {**merged, "NetworkInterfaces": interfaces}


def run_instances(work: Work) -> Json:
    """One type, one subnet; what the fleet lists as errors is here the error of the call."""
    params, cloud = work.params, work.cloud
    if not params.get("DryRun"):
        before = cloud.tokens.first_answer("RunInstances", params)
        if before is not None:
            work.notes |= {**before[1], "replayed": True}
            return before[0]
    if params.get("LaunchTemplate"):
        limits.check_template_specification(params["LaunchTemplate"])
    data = _merged_with_template(work)
    limits.check_groups_are_in_one_place(data)
    limits.check_specified(data.get("TagSpecifications"), params.get("TagSpecifications"))
    user_data_of(data)
    check_user_data(data)
    placement = data.get("Placement") or {}
    subnet = launching.subnet_for(cloud, data, placement.get("AvailabilityZone"))
    kind = launching.capacity_type_of(data, "on-demand")
    order = Order(
        data=data,
        pool=Pool(type=data.get("InstanceType", "m1.small"), zone=subnet["zone"], capacity_type=kind),
        subnet=subnet["id"],
        tags=launching.tags_from(data, params.get("TagSpecifications")),
        reservation=f"r-{cloud.instances.next_number:017x}",
        volume_tags=filters.tags_for(params.get("TagSpecifications"), "volume"),
        client_token=params.get("ClientToken"),
    )
    launching.check(cloud, order)
    work.effect_begins()
    launching.check_room(cloud, order)
    made = [launching.launch(cloud, order) for _ in range(int(params.get("MaxCount", 1)))]
    answer = {
        "ReservationId": order.reservation,
        "OwnerId": ACCOUNT,
        "Instances": [describe_instance(cloud, each) for each in made],
    }
    notes = {"instances": [each.id for each in made]}
    cloud.tokens.remember("RunInstances", params, (answer, notes))
    work.notes |= notes
    return answer


OPERATIONS: Operations = {
    ("ec2", "CreateFleet"): create_fleet,
    ("ec2", "RunInstances"): run_instances,
}
