"""Pods that have nowhere else to go ask once more for what was short a while ago (decision 240).

A shortage is remembered for minutes, whether it lasts or not. One claim at a time finds out: if the shortage lasts, it
costs no more than that claim; if there is capacity again, the others follow in the next pass.
"""

from collections.abc import Mapping
from dataclasses import replace

from dovetail.model.own.claim_memory import memory_of
from dovetail.model.pools import Catalogue
from dovetail.model.snapshot import Snapshot


def with_short_offerings(snapshot: Snapshot) -> Snapshot | None:
    """The cluster as if what may be retried were available; None if nothing may be, or if a claim already asks."""
    asks = any(
        memory_of(claim.annotations).asks_again and not claim.provider_id and claim.deleting_since is None
        for claim in snapshot.claims.values()
    )
    changed = {} if asks else _opened(snapshot.catalogues)
    return replace(snapshot, catalogues={**snapshot.catalogues, **changed}) if changed else None


def _opened(catalogues: Mapping[str, Catalogue]) -> dict[str, Catalogue]:
    found: dict[str, Catalogue] = {}
    for pool, catalogue in catalogues.items():
        types = tuple(each.asked_again() for each in catalogue.types)
        if any(new is not old for new, old in zip(types, catalogue.types, strict=True)):
            found[pool] = replace(catalogue, types=types)
    return found
