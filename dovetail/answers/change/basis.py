"""The cluster that a change is applied to: as it is now, or as it was recorded.

A recording has no cloud. Its catalogues hold for every NodePool of the same NodeClass; a changed NodeClass cannot be
judged on a recording, because it is not known what it would resolve to.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.recording import Recording, read_recording
from dovetail.answers.look.sources import Look, look_at, look_through, opened, recorded_in
from dovetail.answers.record.paces import paces_or_none
from dovetail.disruption.outlook.paces import Paces
from dovetail.disruption.upkeep.conditions import INSTANCE_TYPE_NOT_FOUND, NODE_POOL_DRIFTED, REQUIREMENTS_DRIFTED
from dovetail.model import names
from dovetail.model.nodes import NodeClaim, NodeClassRef, RepairPolicy
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Catalogues, NodeClassState, SupposedClasses
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

# The reasons that are judged anew from the objects themselves; all others are the cloud's.
_OURS: Final = frozenset({NODE_POOL_DRIFTED, REQUIREMENTS_DRIFTED, INSTANCE_TYPE_NOT_FOUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """A look, and what else a change needs. `raw`: one object of a kind as JSON, None if there is none; `paces`: how
    long nodes recently took."""

    look: Look
    raw: Callable[[str, str], Awaitable[Json | None]]
    catalogues: Catalogues
    supposed: SupposedClasses | None
    paces: Paces = field(default_factory=Paces)


@asynccontextmanager
async def basis_of(settings: Settings, file: Path | None) -> AsyncIterator[Basis]:
    """The recorded cluster if a file is named, else the live cluster."""
    if file is not None:
        recording = await asyncio.to_thread(read_recording, file)
        if not recording.objects:
            raise CommandFailed(
                f"{file}: a decision that a worker kept has no objects that a change could be laid over"
            )
        found = look_at(recording, settings, recorded_in(recording, file))
        yield Basis(look=found, raw=_Recorded(recording).raw, catalogues=RecordedCatalogues(recording), supposed=None)
        return
    async with opened(settings) as world:
        yield basis_in(world, await look_through(world, settings), await paces_or_none(settings))


def basis_in(world: World, look: Look, paces: Paces) -> Basis:
    """An open world, with a look at it."""
    return Basis(
        look=look, raw=world.inspection.object, catalogues=world.catalogues, supposed=world.supposed, paces=paces
    )


class _Recorded:
    def __init__(self, recording: Recording) -> None:
        self._objects = recording.objects

    async def raw(self, kind: str, name: str) -> Json | None:
        return next((each for each in self._objects.get(kind, ()) if each["metadata"]["name"] == name), None)


class RecordedCatalogues:
    """The port Catalogues over a recording."""

    def __init__(self, recording: Recording) -> None:
        snapshot = recording.snapshot
        self._pools, self._by_pool, self._objects = snapshot.pools, snapshot.catalogues, recording.objects
        self._by_class: Mapping[NodeClassRef, Catalogue] = {
            self._pools[name].template.node_class: catalogue
            for name, catalogue in self._by_pool.items()
            if name in self._pools
        }
        self._supported = snapshot.supported_node_classes

    async def catalogue(self, pool: NodePool) -> Catalogue:
        reference, before = pool.template.node_class, self._pools.get(pool.name)
        if before is not None and before.template.node_class == reference and pool.name in self._by_pool:
            return self._by_pool[pool.name]
        missing = Catalogue(error=f"{reference.kind} {reference.name}: no NodePool of the recording uses it")
        return self._by_class.get(reference, missing)

    async def node_class(self, reference: NodeClassRef) -> NodeClassState:
        raws = self._objects.get(reference.kind, ())
        raw = next((each for each in raws if each["metadata"]["name"] == reference.name), None)
        if raw is None:
            return NodeClassState(found=False)
        conditions = (raw.get("status") or {}).get("conditions") or ()
        ready: Json = next((each for each in conditions if each.get("type") == names.READY), {})
        status = ready.get("status")
        return NodeClassState(
            found=True,
            deleting="deletionTimestamp" in raw["metadata"],
            ready=status if status in ("True", "False") else "Unknown",
            reason=ready.get("reason") or "",
            message=ready.get("message") or "",
            generation=raw["metadata"].get("generation", 0),
        )

    async def drift(self, claim: NodeClaim) -> str:
        """The cloud's judgement at the time of the recording."""
        condition = claim.condition(names.DRIFTED)
        drifted = condition is not None and condition.status == "True" and condition.reason not in _OURS
        return condition.reason if condition is not None and drifted else ""

    def supported_classes(self) -> frozenset[tuple[str, str]]:
        return self._supported

    async def repair_policies(self) -> tuple[RepairPolicy, ...]:
        return ()
