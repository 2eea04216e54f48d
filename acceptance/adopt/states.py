"""The recorded states: read from a file, and moved in time so that the recorded moment is now.

Every object carries the moments of its past, and deadlines: left as they were, each launch would be overdue and each
node expired. No field holds the moment of a state. It is the latest moment in it, because the recorder wrote a state
whenever something had changed.
"""

import gzip
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from dovetail.model.values.json import Json
from dovetail.model.values.time import parse_time

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Moments that lie ahead of the one at which they are written.
_AHEAD: Final = ("deletionTimestamp", "karpenter.sh/nodeclaim-termination-timestamp")

# The sections of a state, in an order in which owners come before what they own.
KINDS: Final = {
    "nodeClasses": ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    "nodePools": ("karpenter.sh/v1", "NodePool"),
    "nodeClaims": ("karpenter.sh/v1", "NodeClaim"),
    "nodes": ("v1", "Node"),
    "deployments": ("apps/v1", "Deployment"),
    "replicaSets": ("apps/v1", "ReplicaSet"),
    "podDisruptionBudgets": ("policy/v1", "PodDisruptionBudget"),
    "pods": ("v1", "Pod"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What one cluster held when its Karpenter stopped."""

    id: str
    scenario: str
    seconds: float
    words: tuple[str, ...]  # each claim's phase, for the reader
    objects: dict[str, list[Json]]  # by kind
    instances: list[Json]

    def every(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return self.objects.get(kind, [])


def read_states(file: Path) -> list[State]:
    """All states of a file, one JSON object a line; .gz or plain."""
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    return [_state(json.loads(line)) for line in text.splitlines() if line.strip()]


def _state(raw: Json) -> State:
    objects: dict[str, list[Json]] = {}
    for section, (version, kind) in KINDS.items():
        bodies = raw["objects"].get(section) or []
        objects[kind] = [{**body, "apiVersion": version, "kind": kind} for body in bodies]
    unknown = sorted(set(raw["objects"]) - set(KINDS))
    if unknown:
        raise ValueError(f"{raw['id']}: objects of an unknown section: {', '.join(unknown)}")
    return State(
        id=raw["id"],
        scenario=raw["scenario"],
        seconds=raw["seconds"],
        words=tuple(raw.get("claims") or ()),
        objects=objects,
        instances=raw["instances"],
    )


def moment_of(state: State) -> float:
    """When the state was recorded, to the second."""
    past = [at for bodies in state.objects.values() for body in bodies for at in _past(body)]
    began = [_parsed(d["metadata"]["creationTimestamp"]) + state.seconds for d in state.every("Deployment")[:1]]
    return max([*past, *began, *(float(i["launch"]) for i in state.instances)])


def moved_to(state: State, now: float) -> State:
    """The same state as if it had been recorded at that moment; by whole seconds, so that nothing lies ahead."""
    shift = math.floor(now - moment_of(state))
    objects = {kind: [_moved(body, shift) for body in bodies] for kind, bodies in state.objects.items()}
    instances = [{**i, "launch": float(i["launch"]) + shift} for i in state.instances]
    return replace(state, objects=objects, instances=instances)


def _past(value: Any, key: str = "") -> Iterator[float]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _past(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _past(inner, key)
    elif key not in _AHEAD and isinstance(value, str) and _MOMENT.fullmatch(value):
        yield _parsed(value)


def _moved(value: Any, shift: int) -> Any:
    if isinstance(value, dict):
        return {name: _moved(inner, shift) for name, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, shift) for inner in value]
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        moved = datetime.fromisoformat(value) + timedelta(seconds=shift)
        return moved.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def _parsed(text: str) -> float:
    return parse_time(text)
