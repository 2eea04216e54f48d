"""What the AWS adapter counts, under the names of Karpenter's AWS provider (AWS-166).

The 22,000 series of types and offerings are made only when the metrics are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from dovetail.metrics.instruments import PREFIX, Instruments
from dovetail.model import names as core
from dovetail.model.pools import InstanceType, Offering
from dovetail.model.resources import NANO

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

_user_data: dict[str, int] = {}  # bytes by NodeClass
_offered: dict[str, tuple[InstanceType, ...]] = {}  # by NodeClass, its types when it was last asked


def count(name: str, labels: Mapping[str, str] | None = None, number: int = 1) -> None:
    """Add to the counter of that name."""
    INSTRUMENTS.count(name, labels or {}, number)


def observe(name: str, amount: float, labels: Mapping[str, str] | None = None) -> None:
    """Add one observation to the histogram of that name."""
    INSTRUMENTS.observe(name, amount, labels or {})


def called(service: str, operation: str, seconds: float, code: str) -> None:
    """Count one call to AWS."""
    labels = {"service": service, "operation": operation}
    observe("aws_request_duration_seconds", seconds, labels)
    count("aws_requests_total", {**labels, "code": code})


def show_user_data(node_class: str, size: int) -> None:
    """How large a class's user data is, decoded (AWS-100)."""
    _user_data[node_class] = size


def show_types(node_class: str, types: tuple[InstanceType, ...]) -> None:
    """The types that a class could launch at this moment."""
    _offered[node_class] = types


def forget(node_class: str) -> None:
    """Forget a class that is gone."""
    _user_data.pop(node_class, None)
    _offered.pop(node_class, None)


def _types() -> Iterable[InstanceType]:
    """Each type once; classes differ in what they make of it, and any of them will do."""
    return {each.name: each for types in list(_offered.values()) for each in types}.values()


def _cpus(_: CallbackOptions) -> Iterator[Observation]:
    for each in _types():
        yield Observation(each.capacity.get("cpu", 0) / NANO, {"instance_type": each.name})


def _memory(_: CallbackOptions) -> Iterator[Observation]:
    for each in _types():
        yield Observation(each.capacity.get("memory", 0), {"instance_type": each.name})


class _Place(NamedTuple):
    """The labels of an offering's series."""

    instance_type: str
    capacity_type: str
    zone: str


def _offerings() -> dict[_Place, Offering]:
    """By type, capacity type and zone; one that any class may have counts as available."""
    found: dict[_Place, Offering] = {}
    for types in list(_offered.values()):
        for each in types:
            for offering in each.offerings:
                place = {e.key: e.values[0] for e in offering.requirements[:2] if e.values}
                key = _Place(each.name, place.get(core.CAPACITY_TYPE, ""), place.get(core.ZONE, ""))
                if key not in found or offering.available:
                    found[key] = offering
    return found


def _available(_: CallbackOptions) -> Iterator[Observation]:
    for key, offering in _offerings().items():
        yield Observation(float(offering.available), key._asdict())


def _prices(_: CallbackOptions) -> Iterator[Observation]:
    for key, offering in _offerings().items():
        yield Observation(offering.price, key._asdict())


def _sizes(_: CallbackOptions) -> Iterator[Observation]:
    for name, size in list(_user_data.items()):
        yield Observation(size, {"nodeclass": name})


for _name, _callback, _words in (
    ("cloudprovider_instance_type_cpu_cores", _cpus, "Cores of each instance type."),
    ("cloudprovider_instance_type_memory_bytes", _memory, "Memory of each instance type."),
    ("cloudprovider_instance_type_offering_available", _available, "Whether an offering can be had now."),
    ("cloudprovider_instance_type_offering_price_estimate", _prices, "Dollars an hour of each offering."),
    ("ec2nodeclasses_userdata_bytes", _sizes, "Bytes of the user data of a class; EC2 takes 16384."),
):
    METER.create_observable_gauge(PREFIX + _name, callbacks=[_callback], description=_words)
