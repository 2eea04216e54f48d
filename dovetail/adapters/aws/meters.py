"""What the AWS adapter counts, under the names of Karpenter's AWS provider (AWS-166).

The 22,000 series of types and offerings are made only when the metrics are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from opentelemetry import metrics

from dovetail.model import names as core
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.values.resources import NANO
from dovetail.telemetry.metrics.duties import UPKEEP
from dovetail.telemetry.metrics.exposition import measured
from dovetail.telemetry.metrics.gauges import Sample
from dovetail.telemetry.metrics.instruments import OWN_PREFIX, Instruments
from dovetail.telemetry.metrics.sources import Source, register

METER: Final = metrics.get_meter("dovetail.aws")

_LATENCIES: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_SIZES: Final = (1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 20.0, 25.0, 50.0, 100.0, 250.0, 500.0)
COUNTERS: Final = {
    "interruption_received_messages_total": "Messages read from the queue of interruptions, by kind.",
    "interruption_deleted_messages_total": "Messages deleted from the queue of interruptions.",
    "interruption_instance_status_unhealthy_total": "Instances that EC2's own checks found unhealthy, by category.",
    "cloudprovider_instance_launch_failures_total": "Offerings that a launch could not have, by reason.",
    "cloudprovider_instance_termination_failures_total": "Terminations of instances that failed.",
    "aws_requests_total": "Calls to AWS, by error code where there was one.",
}
HISTOGRAMS: Final[dict[str, tuple[str, tuple[float, ...]]]] = {
    "interruption_message_queue_duration_seconds": (
        "Seconds from an interruption's own time to its answer.",
        _LATENCIES,
    ),
    "cloudprovider_batcher_batch_time_seconds": ("Seconds for which calls of one kind were gathered.", _LATENCIES),
    "cloudprovider_batcher_batch_size": ("Requests that shared one call.", _SIZES),
    "aws_request_duration_seconds": ("Seconds of calls to AWS, retries of the SDK included.", _LATENCIES),
}

INSTRUMENTS: Final = Instruments(meter=METER, counters=COUNTERS, histograms=HISTOGRAMS)

# The same calls under the names of the library that Karpenter calls AWS with.
SDK: Final = Instruments(
    meter=metrics.get_meter("dovetail.aws_sdk"),
    counters={
        "request_total": "Calls to AWS, by service, action and error code; 200 where there was none.",
        "request_attempt_total": "Attempts of calls to AWS, the retries of its library included.",
    },
    histograms={
        "request_duration_seconds": ("Seconds of calls to AWS, retries included.", _LATENCIES),
        "request_retry_count": ("Retries of each call to AWS.", (0.0, 1.0, 2.0, 3.0, 5.0, 10.0)),
    },
    prefix="aws_sdk_go_",
)

# Ours alone.
OWN: Final = Instruments(
    meter=metrics.get_meter("dovetail.aws_prices"),
    counters={},
    histograms={},
    gauges={
        "aws_prices_refreshed_timestamp_seconds": "When prices of that kind were last fetched, or the worker began."
    },
    prefix=OWN_PREFIX,
)

# As that library calls them.
_SERVICES: Final = {
    "ec2": "EC2",
    "eks": "EKS",
    "iam": "IAM",
    "pricing": "Pricing",
    "sqs": "SQS",
    "ssm": "SSM",
    "sts": "STS",
}

_user_data: dict[str, int] = {}  # bytes by NodeClass
_offered: dict[str, tuple[InstanceType, ...]] = {}  # by NodeClass, its types when it was last asked


def count(name: str, labels: Mapping[str, str] | None = None, number: int = 1) -> None:
    INSTRUMENTS.count(name, labels or {}, number)


def observe(name: str, amount: float, labels: Mapping[str, str] | None = None) -> None:
    INSTRUMENTS.observe(name, amount, labels or {})


def called(service: str, operation: str, seconds: float, code: str) -> None:
    labels = {"service": service, "operation": operation}
    observe("aws_request_duration_seconds", seconds, labels)
    count("aws_requests_total", {**labels, "code": code})
    same = {"service": _SERVICES.get(service, service), "action": operation}
    SDK.count("request_total", {**same, "code": code or "200"})
    SDK.observe("request_duration_seconds", seconds, same)


def retried(service: str, operation: str, retries: int) -> None:
    """Count the retries that a call needed before it was answered."""
    labels = {"service": _SERVICES.get(service, service), "action": operation}
    SDK.count("request_attempt_total", {**labels, "code": "200"}, retries + 1)
    SDK.observe("request_retry_count", retries, labels)


def prices_fetched(kind: str, now: float) -> None:
    """Prices of that kind are up to date now."""
    OWN.gauge("aws_prices_refreshed_timestamp_seconds").set(now, {"kind": kind})


def show_user_data(node_class: str, size: int) -> None:
    """The decoded size of a class's user data (AWS-100)."""
    _user_data[node_class] = size


def show_types(node_class: str, types: tuple[InstanceType, ...]) -> None:
    _offered[node_class] = types


def forget(node_class: str) -> None:
    _user_data.pop(node_class, None)
    _offered.pop(node_class, None)


def _types() -> Iterable[InstanceType]:
    """Each type once; classes differ in what they make of it, and any of them will do."""
    return {each.name: each for types in list(_offered.values()) for each in types}.values()


class _Place(NamedTuple):
    """The labels of an offering's series."""

    instance_type: str
    capacity_type: str
    zone: str


def _offerings() -> dict[_Place, Offering]:
    """By type, capacity type and zone; an offering available to any class counts as available."""
    found: dict[_Place, Offering] = {}
    for types in list(_offered.values()):
        for each in types:
            for offering in each.offerings:
                place = {e.key: e.values[0] for e in offering.requirements[:2] if e.values}
                key = _Place(each.name, place.get(core.CAPACITY_TYPE, ""), place.get(core.ZONE, ""))
                if key not in found or offering.available:
                    found[key] = offering
    return found


HELP: Final = {
    "cloudprovider_instance_type_cpu_cores": "Cores of each instance type.",
    "cloudprovider_instance_type_memory_bytes": "Memory of each instance type.",
    "cloudprovider_instance_type_offering_available": "Whether an offering can be had now.",
    "cloudprovider_instance_type_offering_price_estimate": "Dollars an hour of each offering.",
    "ec2nodeclasses_userdata_bytes": "Bytes of the user data of a class; EC2 takes 16384.",
}


def _samples() -> Iterator[Sample]:
    for each in _types():
        labels = (("instance_type", each.name),)
        cores, memory = each.capacity.get("cpu", 0) / NANO, float(each.capacity.get("memory", 0))
        yield Sample(name="cloudprovider_instance_type_cpu_cores", labels=labels, value=cores)
        yield Sample(name="cloudprovider_instance_type_memory_bytes", labels=labels, value=memory)
    for place, offering in _offerings().items():
        where = tuple(sorted(place._asdict().items()))
        available = float(offering.available)
        yield Sample(name="cloudprovider_instance_type_offering_available", labels=where, value=available)
        yield Sample(name="cloudprovider_instance_type_offering_price_estimate", labels=where, value=offering.price)


class _TypeLines:
    """The lines of types and offerings, rewritten when the offerings of a class change: they are 44,000."""

    def __init__(self) -> None:
        self._of: tuple[tuple[InstanceType, ...], ...] = ()
        self._lines: list[str] = []

    def lines(self) -> Iterator[str]:
        """All of them, and the sizes of user data."""
        offered = tuple(_offered.values())
        if len(offered) != len(self._of) or any(now is not then for now, then in zip(offered, self._of, strict=True)):
            self._of, self._lines = offered, [*measured(_samples(), HELP)]
        yield from self._lines
        sizes = (
            Sample(name="ec2nodeclasses_userdata_bytes", labels=(("nodeclass", name),), value=float(size))
            for name, size in list(_user_data.items())
        )
        yield from measured(sizes, HELP)


TYPE_LINES: Final = _TypeLines()
register(Source(lines=TYPE_LINES.lines, duty=UPKEEP))
