"""A recorded cluster: one gzip file of JSON, enough to ask the engines again on any machine.

Written by `dovetail snapshot`, read by `explain` and `plan` with --snapshot. The objects are the API server's JSON, so
that a later version's parser can read an old file. What no decision reads is left out, for size and because it may be
secret: environments, commands, images, user data, managed fields. Lists of several kinds are not of one instant.
"""

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from dovetail.answers.failures import CommandFailed
from dovetail.model.json import Json
from dovetail.model.pools import Catalogue
from dovetail.ports.inspection import RawObjects

FORMAT: Final = "dovetail-snapshot/1"


_CATALOGUES: Final = TypeAdapter(tuple[Catalogue, ...])
_CONTAINER: Final = ("name", "resources", "ports", "restartPolicy")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_STATUS: Final = ("name", "resources", "allocatedResources")  # what a container was given once it was resized
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A cluster at one moment, as a file holds it."""

    cluster: str
    taken_at: float
    objects: RawObjects
    catalogues: Mapping[str, Catalogue]  # by pool
    supported_node_classes: frozenset[tuple[str, str]] = frozenset()
    nominations: Mapping[str, float] = field(default_factory=dict)
    disrupting: frozenset[str] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)  # those under which decisions were made
    notes: tuple[str, ...] = ()


def write_recording(recording: Recording, file: Path) -> None:
    """Write the file, whole or not at all."""
    # Pools of one NodeClass share their catalogue: each is stored once.
    distinct = tuple({id(c): c for c in recording.catalogues.values()}.values())
    number = {id(c): i for i, c in enumerate(distinct)}
    kept = partial(without_secrets, templates=bool(recording.objects.get("CapacityBuffer")))
    body = {
        "format": FORMAT,
        "cluster": recording.cluster,
        "taken_at": recording.taken_at,
        "objects": {kind: [kept(kind, raw) for raw in raws] for kind, raws in recording.objects.items()},
        "catalogues": _CATALOGUES.dump_python(distinct, mode="json"),
        "catalogue_of": {pool: number[id(c)] for pool, c in recording.catalogues.items()},
        "supported_node_classes": sorted(recording.supported_node_classes),
        "nominations": dict(recording.nominations),
        "disrupting": sorted(recording.disrupting),
        "settings": dict(recording.settings),
        "notes": recording.notes,
    }
    unfinished = file.with_name(f"{file.name}.part")
    try:
        unfinished.write_bytes(gzip.compress(orjson.dumps(body), mtime=int(recording.taken_at)))
        unfinished.replace(file)
    except OSError as error:
        raise CommandFailed(f"{file}: cannot be written: {error.strerror}") from None


def read_recording(file: Path) -> Recording:
    """Read a file; one line says what is wrong with it."""
    try:
        body = orjson.loads(gzip.decompress(file.read_bytes()))
        found = body["format"]
        if found != FORMAT:
            raise CommandFailed(f"{file}: its format is {found}, this version reads {FORMAT}")
        return _recording(body)
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror or 'it is no gzip file'}") from None
    except (EOFError, zlib.error, orjson.JSONDecodeError, ValidationError, LookupError, TypeError, ValueError):
        raise CommandFailed(f"{file}: it is not what `dovetail snapshot` writes, or it is cut off") from None


def _recording(body: Json) -> Recording:
    catalogues = _CATALOGUES.validate_python(body["catalogues"])
    return Recording(
        cluster=body["cluster"],
        taken_at=float(body["taken_at"]),
        objects=body["objects"],
        catalogues={pool: catalogues[number] for pool, number in body["catalogue_of"].items()},
        supported_node_classes=frozenset((group, kind) for group, kind in body["supported_node_classes"]),
        nominations=body["nominations"],
        disrupting=frozenset(body["disrupting"]),
        settings=body["settings"],
        notes=tuple(body["notes"]),
    )


def without_secrets(kind: str, raw: Json, *, templates: bool = False) -> Json:
    """The object without what no decision reads. `templates`: CapacityBuffers read those of workloads."""
    metadata = {name: value for name, value in raw.get("metadata", {}).items() if name != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != _LAST_APPLIED}
    spec, status = raw.get("spec"), raw.get("status")
    kept = {**raw, "metadata": metadata}
    match kind:
        case "Pod":
            kept["spec"] = _pod_spec(spec)
            kept["status"] = _slim(status, _STATUSES, _STATUS)
        case "DaemonSet" if isinstance(spec, dict):
            kept["spec"] = _with_template(spec)
        case "PodTemplate":
            kept = _with_template(kept)
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" if isinstance(spec, dict):
            read = ("selector", "replicas", "template") if templates else ("selector", "replicas")
            kept["spec"] = _with_template({name: spec[name] for name in read if name in spec})
        case "Node" if isinstance(status, dict):
            kept["status"] = {name: value for name, value in status.items() if name != "images"}
        case _ if isinstance(spec, dict) and "userData" in spec:
            kept["spec"] = {name: value for name, value in spec.items() if name != "userData"}
    return kept


def _with_template(body: Json) -> Json:
    """The body, whose pod template says only what its pods' specs would."""
    template = body.get("template")
    if not isinstance(template, dict):
        return body
    return {**body, "template": {**template, "spec": _pod_spec(template.get("spec") or {})}}


def _pod_spec(spec: Any) -> Any:
    """A pod's spec whose containers say only what they need."""
    return _slim(spec, _CONTAINERS, _CONTAINER)


def _slim(body: Any, lists: tuple[str, ...], kept: tuple[str, ...]) -> Any:
    """The body, of the items of whose lists only some fields are kept. A strange form stays: it is to be explained."""
    if not isinstance(body, dict):
        return body
    slim = {
        name: [{key: item[key] for key in kept if key in item} if isinstance(item, dict) else item for item in items]
        for name, items in body.items()
        if name in lists and isinstance(items, list)
    }
    return {**body, **slim}
