"""KWOKNodeClasses as the watch has them, and what the cloud is short of.

A class needs no upkeep: its definition makes it ready, and nothing in it has to be looked up. An unreadable one is not
ready, with the reason.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

import orjson

from dovetail.adapters.kwok import names as own
from dovetail.adapters.kwok.instance_types import OfferingKey
from dovetail.model.nodes import NodeClassRef
from dovetail.model.values.durations import DurationError, parse_seconds
from dovetail.model.values.json import Json
from dovetail.model.values.resources import NANO, QuantityError, Resources, parse_resources
from dovetail.ports.cloud import NodeClassState

SUPPORTED: Final = frozenset({(own.GROUP, own.KIND)})
RESERVED: Final[Resources] = {"cpu": NANO // 10, "memory": 10 * 2**20}
SHORTAGE_SECONDS: Final = 180.0  # for how long a refused offering is not asked for again


@dataclass(frozen=True, slots=True, kw_only=True)
class KwokClass:
    name: str
    state: NodeClassState
    max_pods: int | None = None
    boot_seconds: float = 0.0
    reserved: Resources = field(default_factory=lambda: RESERVED, hash=False)
    sold_out: tuple[str, ...] = ()
    hash: str = ""  # of the whole spec: every field of it changes what an instance is

    def sells(self, pool: OfferingKey) -> bool:
        """Whether the cloud has capacity there: it lacks what the class declares as sold out."""
        return not any(fnmatchcase("/".join(pool), pattern) for pattern in self.sold_out)


class KwokClasses:
    def __init__(self, raws: Callable[[], Mapping[str, Json]]) -> None:
        self.raws = raws

    def get(self, reference: NodeClassRef) -> KwokClass | None:
        """The class; None if there is none, or it belongs to another cloud."""
        if (reference.group, reference.kind) not in SUPPORTED:
            return None
        raw = self.raws().get(reference.name)
        return None if raw is None else read_class(raw)


def read_class(raw: Json) -> KwokClass:
    meta, spec = raw["metadata"], raw.get("spec") or {}
    sold_out = (meta.get("annotations") or {}).get(own.SOLD_OUT) or ""
    try:
        return KwokClass(
            name=meta["name"],
            state=state_of(raw),
            max_pods=spec.get("maxPods"),
            boot_seconds=parse_seconds(spec.get("nodeRegistrationDelay") or "0s"),
            reserved=parse_resources(spec["reservedResources"]) if "reservedResources" in spec else RESERVED,
            sold_out=tuple(each.strip() for each in sold_out.split(",") if each.strip()),
            hash=hashlib.sha256(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16],
        )
    except (DurationError, QuantityError) as error:
        return KwokClass(name=meta["name"], state=state_of(raw, problem=f"spec: {error}"))


def state_of(raw: Json, problem: str = "") -> NodeClassState:
    """What its condition Ready says."""
    meta = raw["metadata"]
    conditions = (raw.get("status") or {}).get("conditions") or []
    ready: dict[str, Any] = next((each for each in conditions if each.get("type") == "Ready"), {})
    said = ready.get("status")
    return NodeClassState(
        found=True,
        deleting="deletionTimestamp" in meta,
        ready="False" if problem else said if said in ("True", "False") else "Unknown",
        reason="Unreadable" if problem else ready.get("reason") or "",
        message=problem or ready.get("message") or "",
        generation=meta.get("generation", 0),
        version=str(meta.get("resourceVersion", "")),
    )


class KwokShortages:
    """Offerings that the cloud has refused, for three minutes. Each worker learns them for itself: another worker is
    refused once more, which costs nothing here."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._until: dict[OfferingKey, float] = {}

    def remember(self, pool: OfferingKey) -> None:
        self._until[pool] = self._clock() + SHORTAGE_SECONDS

    def known(self) -> frozenset[OfferingKey]:
        now = self._clock()
        self._until = {pool: until for pool, until in self._until.items() if until > now}
        return frozenset(self._until)
