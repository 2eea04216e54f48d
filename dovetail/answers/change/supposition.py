"""The cluster as it would be just after the documents are applied, before anything moves.

There are no rules of its own here. Upkeep's own functions run on a snapshot: they write the hashes of pools and claims,
the conditions of pools, and whether each claim has drifted. The cloud answers for a changed NodeClass as it would once
it was applied.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.activities.shared.looks.snapshots import with_catalogues
from dovetail.activities.upkeep.pool_status import PoolStatuses
from dovetail.answers.change.basis import Basis
from dovetail.answers.change.documents import POOL, Document, applied
from dovetail.answers.failures import CommandFailed
from dovetail.disruption.upkeep.conditions import DriftFacts, judge_drifted, resulting_condition
from dovetail.disruption.upkeep.hash_migration import hash_stamps
from dovetail.lifecycle.pool_readiness import pool_faults
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.pools import Catalogue, NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.model.values.json import Json
from dovetail.ports.cloud import Catalogues
from dovetail.ports.failures import Failure
from dovetail.settings.deciding import well_known_labels
from dovetail.wiring.world import recorded_view

TURN: Final = 50  # claims judged between two turns of the event loop


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedObject:
    """One object of the file, as it is and as it would be. `faults`: why it could not be used once applied."""

    kind: str
    name: str
    before: Json | None
    after: Json
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """Two snapshots of one moment: as it is, and as it would be, both with drift judged."""

    before: Snapshot
    after: Snapshot
    objects: tuple[ChangedObject, ...]
    errors: tuple[str, ...] = ()  # claims whose drift could not be judged


async def suppose(basis: Basis, documents: Sequence[Document]) -> Supposed:
    found = [await _changed(basis, document) for document in documents]
    pools = {each.name: each.after for each in found if each.kind == POOL}
    classes = [each.after for each in found if each.kind != POOL]
    catalogues = await _catalogues(basis, documents, classes)
    stands = basis.look.snapshot
    before, unjudged = await _judged(stands, basis.catalogues, basis)
    after = await _with_pools(stands, _read(pools, stands.now), catalogues)
    after, unjudged_after = await _judged(after, catalogues, basis)
    return Supposed(
        before=before,
        after=after,
        objects=tuple([replace(each, faults=await _faults(each, after, catalogues)) for each in found]),
        errors=tuple(dict.fromkeys([*unjudged, *unjudged_after])),
    )


async def standing(basis: Basis) -> Snapshot:
    """The cluster as it is, drift judged at this moment."""
    return (await _judged(basis.look.snapshot, basis.catalogues, basis))[0]


async def _changed(basis: Basis, document: Document) -> ChangedObject:
    live = await basis.raw(document.kind, document.name)
    after = await asyncio.to_thread(applied, document, live)
    return ChangedObject(kind=document.kind, name=document.name, before=live, after=after)


async def _catalogues(basis: Basis, documents: Sequence[Document], classes: Sequence[Json]) -> Catalogues:
    if not classes:
        return basis.catalogues
    if basis.supposed is None:
        first = next(each for each in documents if each.kind != POOL)
        raise CommandFailed(
            f"{first.place}: {first.kind} {first.name}: a recorded cluster has no cloud that could resolve it; "
            "ask the cluster itself, without --snapshot"
        )
    return await basis.supposed.with_classes(classes)


def _read(pools: Mapping[str, Json], now: float) -> dict[str, NodePool]:
    view = recorded_view({POOL: list(pools.values())}, now)
    for fault in view.unreadable():
        raise CommandFailed(f"{fault.kind} {fault.name}: {fault.field}: {fault.message}")
    found = dict(view.snapshot().pools)
    assert found.keys() == pools.keys()  # what the server would admit can be read
    return found


async def _with_pools(stands: Snapshot, changed: Mapping[str, NodePool], catalogues: Catalogues) -> Snapshot:
    """The snapshot with the changed pools, hashed, listed and judged as upkeep does it."""
    snapshot = replace(stands, pools={**stands.pools, **changed})
    snapshot = _hashed(snapshot)
    listed = await with_catalogues(lambda: snapshot, catalogues)
    writes, _ = await PoolStatuses(catalogues, lambda: stands.now).wanted(listed)
    pools = {
        name: replace(pool, conditions=writes[name].conditions or pool.conditions) if name in writes else pool
        for name, pool in listed.pools.items()
    }
    return replace(listed, pools=pools)


def _hashed(snapshot: Snapshot) -> Snapshot:
    pools, claims = dict(snapshot.pools), dict(snapshot.claims)
    ours = [claim for claim in claims.values() if snapshot.is_ours(claim.node_class)]
    for name, pool in snapshot.pools.items():
        if not snapshot.is_ours(pool.template.node_class):
            continue
        stamps = hash_stamps(pool, ours)
        pools[name] = replace(pool, annotations={**pool.annotations, **dict(stamps.pool)})
        for claim, stamp in stamps.claims:
            claims[claim] = replace(claims[claim], annotations={**claims[claim].annotations, **dict(stamp)})
    return replace(snapshot, pools=pools, claims=claims)


async def _judged(snapshot: Snapshot, catalogues: Catalogues, basis: Basis) -> tuple[Snapshot, list[str]]:
    """Every claim with the condition Drifted that it should have."""
    claims, errors = dict(snapshot.claims), list[str]()
    for number, (name, claim) in enumerate(snapshot.claims.items()):
        if number % TURN == 0:
            await asyncio.sleep(0)  # the worker has heartbeats to send
        pool = snapshot.pools.get(claim.labels.get(names.NODE_POOL, ""))
        if pool is None or claim.deleting_since is not None or not snapshot.is_ours(claim.node_class):
            continue
        facts = await _facts(snapshot, claim, pool, catalogues, basis)
        judged = Judging().judge(claim, "drift", judge_drifted, claim, pool, facts, snapshot.now)
        if isinstance(judged, Unjudged):
            errors.append(judged.says)
            continue
        if judged.error:
            errors.append(f"NodeClaim {name}: {judged.error}")
        wanted = resulting_condition(judged, claim, names.DRIFTED, snapshot.now)
        others = tuple(each for each in claim.conditions if each.type != names.DRIFTED)
        claims[name] = replace(claim, conditions=(*others, wanted) if wanted is not None else others)
    return replace(snapshot, claims=claims), errors


async def _facts(
    snapshot: Snapshot, claim: NodeClaim, pool: NodePool, catalogues: Catalogues, basis: Basis
) -> DriftFacts:
    reason, error = "", ""
    if claim.is_true(names.LAUNCHED):
        try:
            reason = await catalogues.drift(claim)
        except Failure as failure:
            error = str(failure)
    settings = basis.look.settings
    return DriftFacts(
        catalogue=snapshot.catalogues.get(pool.name, Catalogue(error="not listed")),
        provider_reason=reason,
        provider_error=error,
        well_known=well_known_labels(settings),
        reservation_labels=settings.provider.reservation_labels,
    )


async def _faults(changed: ChangedObject, after: Snapshot, catalogues: Catalogues) -> tuple[str, ...]:
    if changed.kind == POOL:
        pool = after.pools[changed.name]
        catalogue = after.catalogues.get(pool.name)
        listed = (catalogue.error,) if catalogue is not None and catalogue.error else ()
        return (*pool_faults(pool), *listed)
    return tuple(await _class_faults(changed, after.pools.values(), catalogues))


async def _class_faults(changed: ChangedObject, pools: Iterable[NodePool], catalogues: Catalogues) -> list[str]:
    references = {pool.template.node_class for pool in pools}
    for reference in references:
        if (reference.kind, reference.name) == (changed.kind, changed.name):
            state = await catalogues.node_class(reference)
            return [] if state.ready == "True" else [f"it would not be ready: {state.message or state.reason}"]
    return []
