"""A cluster at one moment as one gzip file of JSON lines: enough to ask the engines again on any machine.

`dovetail snapshot` keeps the API server's objects, so that a later version's parser can read an old file. A worker that
keeps a decision has no such objects, and asking for them would give another moment: it keeps the snapshot that it
decided on, as the engines read it, and a version that has changed the model may refuse it. All else is the same.

It is written in pieces, so that no single encoding holds the interpreter for long: heartbeats continue beside it.
Shapes of pods, which are compared by identity, and catalogues of NodePools are written once, however many share them.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter

from dovetail.activities.shared.looks.flights import DecisionKind
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.left_out import without_secrets
from dovetail.disruption.choose import Choice
from dovetail.disruption.decision_snapshot import for_disruption
from dovetail.messages.plans import ProvisioningPlan
from dovetail.model.pods import PodShape
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot
from dovetail.ports.inspection import RawObjects
from dovetail.settings.settings import Settings
from dovetail.telemetry.log.start import product_version
from dovetail.wiring.world import recorded_view

FORMAT: Final = "dovetail-snapshot/2"
PIECE: Final = 500  # objects that are encoded at once
_OF_ONE_VIEW: Final = ("changed", "stale", "pod_index")  # what is of a view, and not of the cluster
_IN_NO_OBJECT: Final = ("catalogues", "repair_policies", "supported_node_classes", "nominations", "disrupting")
_SHARED: Final[Mapping[str, type]] = {"shape": PodShape, "catalogue": Catalogue}
_SHAPES: Final[Any] = {"__all__": {"shape"}}


class NoRecording(ValueError):
    """The data are no recording, or one in another format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision. `first`: the pods that provisioning began with, because the pass before had no time for them."""

    kind: DecisionKind
    plan: Choice | ProvisioningPlan
    first: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """`settings`: those under which decisions were made, by name; `objects`: the API server's, none where a worker kept
    its decision."""

    cluster: str
    snapshot: Snapshot
    settings: Mapping[str, Any]
    version: str = field(default_factory=product_version)
    objects: RawObjects = field(default_factory=dict)
    decision: Decision | None = None
    notes: tuple[str, ...] = ()

    @property
    def taken_at(self) -> float:
        return self.snapshot.now

    def over(self, settings: Settings) -> Settings:
        """The settings with those of the recording in place of their own."""
        return settings.model_copy(update=dict(self.settings))


def write_recording(recording: Recording, file: Path) -> None:
    """Write the file, whole or not at all."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        unfinished.write_bytes(packed(recording))
        unfinished.replace(file)
    except OSError as error:
        raise CommandFailed(f"{file}: cannot be written: {error.strerror}") from None


def read_recording(file: Path) -> Recording:
    """Read a file; one line says what is wrong with it."""
    try:
        return unpacked(file.read_bytes())
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}") from None
    except NoRecording as error:
        raise CommandFailed(f"{file}: {error}") from None


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Between objects of that type and JSON. Made when it is asked for: those of pods and plans take a while."""
    return TypeAdapter(kind)


def packed(recording: Recording) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)  # with gzip's head
    return b"".join([*(packer.compress(line) for line in _lines(recording)), packer.flush()])


def unpacked(data: bytes) -> Recording:
    try:
        lines = [json.loads(line) for line in gzip.decompress(data).splitlines()]
        head, body = lines[0], lines[1:]
        read = _READERS.get(head["format"])
        if read is None:
            raise NoRecording(f"its format is {head['format']}, this version reads {', '.join(_READERS)}")
        return read(head, body)
    except NoRecording:
        raise
    except gzip.BadGzipFile:
        raise NoRecording("it is no gzip file, or it is cut off") from None
    except (EOFError, zlib.error, LookupError, TypeError, ValueError) as error:
        words = "it is not what `dovetail snapshot` writes or a worker keeps, or it is cut off"
        raise NoRecording(f"{words} ({type(error).__name__})") from None


def _lines(recording: Recording) -> Iterator[bytes]:
    decision, objects = recording.decision, recording.objects
    head = {
        "format": FORMAT,
        "cluster": recording.cluster,
        "taken_at": recording.taken_at,
        "version": recording.version,
        "settings": {name: _setting(name).dump_python(v, mode="json") for name, v in recording.settings.items()},
        "kinds": list(objects),
        "decision": decision and adapter(Decision).dump_python(decision, mode="json"),
        "notes": recording.notes,
    }
    yield _line(head)
    kept = partial(without_secrets, templates=bool(objects.get("CapacityBuffer")))
    for kind, raws in objects.items():
        for start in range(0, len(raws), PIECE):
            yield _line({"objects": kind, "value": [kept(kind, raw) for raw in raws[start : start + PIECE]]})
    for name in _IN_NO_OBJECT if objects else _types():
        yield from _field(name, getattr(recording.snapshot, name))


def _field(name: str, value: Any) -> Iterator[bytes]:
    """In pieces, where it is a mapping."""
    numbers: dict[int, int] = {}
    if name == "pods":
        numbers = yield from _once("shape", (pod.shape for pod in value.values()))
    elif name == "catalogues":
        numbers = yield from _once("catalogue", value.values())
    items = list(value.items()) if isinstance(value, Mapping) else []
    for start in range(0, max(1, len(items)), PIECE):
        piece = dict(items[start : start + PIECE]) if isinstance(value, Mapping) else value
        if name == "catalogues":
            raw: Any = {pool: numbers[id(catalogue)] for pool, catalogue in piece.items()}
        else:
            raw = adapter(_types()[name]).dump_python(piece, mode="json", exclude=_SHAPES if name == "pods" else None)
        for uid, pod in piece.items() if name == "pods" else ():
            raw[uid]["shape"] = numbers[id(pod.shape)]
        yield _line({"field": name, "value": raw})


def _once(name: str, values: Iterable[Any]) -> Generator[bytes, None, dict[int, int]]:
    """A value that many share, written once; the others refer to its number, by identity."""
    distinct = {id(value): value for value in values}
    for value in distinct.values():
        yield _line({name: adapter(_SHARED[name]).dump_python(value, mode="json")})
    return {identity: number for number, identity in enumerate(distinct)}


def _line(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"  # the standard library knows infinity


def _second(head: dict[str, Any], body: list[dict[str, Any]]) -> Recording:
    objects: dict[str, list[Any]] = {kind: [] for kind in head["kinds"]}
    for line in body:
        if "objects" in line:
            objects[line["objects"]] += line["value"]
    found = _fields(body)
    if objects:
        whole = replace(recorded_view(objects, float(head["taken_at"])).snapshot(), **found)
        snapshot = for_disruption(whole, whole.nominations, whole.disrupting)
    else:
        snapshot = Snapshot(**found)
    settings = {name: value for name, value in head["settings"].items() if name in Settings.model_fields}
    return Recording(
        cluster=head["cluster"],
        snapshot=snapshot,
        settings={name: _setting(name).validate_python(value) for name, value in settings.items()},
        version=head["version"],
        objects=objects,
        decision=head["decision"] and adapter(Decision).validate_python(head["decision"]),
        notes=tuple(head["notes"]),
    )


def _fields(body: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    shapes, catalogues = (
        [adapter(kind).validate_python(line[name]) for line in body if name in line] for name, kind in _SHARED.items()
    )
    for name, value in ((line["field"], line["value"]) for line in body if "field" in line):
        if name == "catalogues":
            value = {pool: catalogues[number] for pool, number in value.items()}
        else:
            for pod in value.values() if name == "pods" else ():
                pod["shape"] = shapes[pod["shape"]]
            value = adapter(_types()[name]).validate_python(value)
        found[name] = {**found[name], **value} if name in found else value
    return found


@cache
def _types() -> dict[str, Any]:
    """Of the fields of a snapshot, but for those of the view that it comes from."""
    hints = get_type_hints(Snapshot)
    return {each.name: hints[each.name] for each in fields(Snapshot) if each.name not in _OF_ONE_VIEW}


def _setting(name: str) -> TypeAdapter[Any]:
    kind: Any = Settings.model_fields[name].annotation
    return adapter(kind)


_READERS: Final[dict[str, Callable[[dict[str, Any], list[dict[str, Any]]], Recording]]] = {FORMAT: _second}
