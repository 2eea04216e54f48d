"""A decision with everything that it was made from, as one gzip file of JSON lines.

The snapshot itself is kept, as the engines read it, and not the objects that it was read from: a worker holds no raw
objects, and asking the API server for them would give another moment. It is written in pieces, so that no single
encoding holds the interpreter for long: heartbeats go on beside it. Pods share their shapes, which are compared by
identity, and a shape is written once. Environments, commands and images are in no snapshot.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter, ValidationError

from dovetail.activities.shared.flights import DecisionKind
from dovetail.disruption.choose import Choice, NothingToDo
from dovetail.messages.plans import DisruptionPlan, ProvisioningPlan
from dovetail.model.pods import Pod, PodShape, SpreadConstraint
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import Settings

FORMAT: Final = "dovetail-flight/1"
PIECE: Final = 500  # objects that are encoded at once


class NoFlight(ValueError):
    """The data are no flight, or one of another format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """The settings that bear on decisions."""

    preferences: str
    min_values: str
    gates: Mapping[str, bool]
    default_spread: tuple[SpreadConstraint, ...]
    batch_max: float
    placement_policy: str
    node_cost: float
    cost_seconds: float
    cost_room: float
    claims_per_pod: int
    cost_keep_places: bool = False  # a version that did not say so kept none
    cost_spot_chance: float = 1.0  # and counted spot nodes at the cheapest pool

    @classmethod
    def of(cls, settings: Settings) -> "Under":
        """Those of a worker."""
        return cls(**{each.name: getattr(settings, each.name) for each in fields(cls)})

    def over(self, settings: Settings) -> Settings:
        """The settings with these in place of their own."""
        return settings.model_copy(update={each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One decision. `first`: the pods that provisioning began with, because the pass before had no time for them."""

    kind: DecisionKind
    version: str  # of the program
    under: Under
    snapshot: Snapshot
    plan: Choice | ProvisioningPlan
    first: frozenset[str] = frozenset()


PLANS: Final[TypeAdapter[Any]] = TypeAdapter(DisruptionPlan | NothingToDo | ProvisioningPlan)
_UNDER: Final = TypeAdapter(Under)
_POD: Final = TypeAdapter(Pod)
_SHAPE: Final = TypeAdapter(PodShape)
_PODS: Final = "pods"


def packed(flight: Flight) -> bytes:
    """As it is kept."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)  # with gzip's head
    return b"".join([*(packer.compress(line) for line in _lines(flight)), packer.flush()])


def unpacked(data: bytes) -> Flight:
    """The decision again."""
    try:
        lines = [json.loads(line) for line in gzip.decompress(data).splitlines()]
        head, body = lines[0], lines[1:]
        if head["format"] != FORMAT:
            raise NoFlight(f"its format is {head['format']}, this version reads {FORMAT}")
        return Flight(
            kind=head["kind"],
            version=head["version"],
            under=_UNDER.validate_python(head["under"]),
            snapshot=_snapshot(body),
            plan=PLANS.validate_python(head["plan"]),
            first=frozenset(head["first"]),
        )
    except (OSError, EOFError, zlib.error, LookupError, TypeError, json.JSONDecodeError, ValidationError) as error:
        raise NoFlight(f"it is no decision that was kept, or it is cut off ({type(error).__name__})") from None


def _lines(flight: Flight) -> Iterator[bytes]:
    yield _line(
        {
            "format": FORMAT,
            "kind": flight.kind,
            "version": flight.version,
            "under": _UNDER.dump_python(flight.under, mode="json"),
            "plan": PLANS.dump_python(flight.plan, mode="json"),
            "first": sorted(flight.first),
        }
    )
    numbers: dict[int, int] = {}
    for pod in flight.snapshot.pods.values():
        if id(pod.shape) not in numbers:
            numbers[id(pod.shape)] = len(numbers)
            yield _line({"shape": _SHAPE.dump_python(pod.shape, mode="json")})
    for piece in _pieces(flight.snapshot.pods):
        pods = {uid: _POD.dump_python(pod, mode="json", exclude={"shape"}) for uid, pod in piece.items()}
        numbered = {uid: {**raw, "shape": numbers[id(piece[uid].shape)]} for uid, raw in pods.items()}
        yield _line({"field": _PODS, "value": numbered})
    for name, adapter in _adapters().items():
        for piece in _pieces(getattr(flight.snapshot, name)):
            yield _line({"field": name, "value": adapter.dump_python(piece, mode="json")})


def _line(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"  # the standard library knows infinity


def _pieces(value: Any) -> Iterator[Any]:
    """A mapping comes in several."""
    if not isinstance(value, Mapping):
        yield value
        return
    items = list(value.items())
    for start in range(0, len(items), PIECE):
        yield dict(items[start : start + PIECE])


def _snapshot(lines: list[dict[str, Any]]) -> Snapshot:
    found: dict[str, Any] = {}
    adapters = _adapters()
    shapes = [_SHAPE.validate_python(line["shape"]) for line in lines if "shape" in line]
    for line in lines:
        if "shape" in line:
            continue
        name, value = line["field"], line["value"]
        if name == _PODS:
            value = {uid: _POD.validate_python({**raw, "shape": shapes[raw["shape"]]}) for uid, raw in value.items()}
        else:
            value = adapters[name].validate_python(value)
        found[name] = {**found[name], **value} if name in found else value
    return Snapshot(**found)


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(Snapshot)
    return {each.name: TypeAdapter(hints[each.name]) for each in fields(Snapshot) if each.name != _PODS}
