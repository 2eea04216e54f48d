"""Which NodePools take no part in planning, and why.

The engine decides which pools these are; only the words are made here.
"""

from collections.abc import Iterator

from dovetail.answers.look.readiness import not_ready_words, where_to_mend
from dovetail.answers.look.shortages import short_of_pool
from dovetail.model.names import READY
from dovetail.model.places.placements import EmptyPool
from dovetail.model.pools import NodePool
from dovetail.model.snapshot import Snapshot
from dovetail.placement.place_pods import Index


def pools_left_out(index: Index) -> tuple[tuple[str, str], ...]:
    """Each pool that no new node is made for, with the reason, by name."""
    snapshot = index.snapshot
    usable = {pool.name for pool in index.pools}
    words = {name: _words(snapshot, pool) for name, pool in snapshot.pools.items() if name not in usable}
    for empty in index.empty_pools:
        words[empty.pool] = _types_words(snapshot, empty)
    return tuple(sorted(words.items()))


def _words(snapshot: Snapshot, pool: NodePool) -> str:
    return "; ".join(_why(snapshot, pool)) or "it takes no part in planning"


def _why(snapshot: Snapshot, pool: NodePool) -> Iterator[str]:
    reference = pool.template.node_class
    if pool.deleting_since is not None:
        yield "it is being deleted"
    if pool.replicas is not None:
        yield f"it is static ({pool.replicas} nodes)"
    supported = snapshot.supported_node_classes
    if supported and (reference.group, reference.kind) not in supported:
        yield f"{reference.kind} is no NodeClass of this cloud"
    elif not pool.is_true(READY):
        words = not_ready_words(pool)
        yield f"it is not ready: {f'{words} → {where_to_mend(pool)}' if words else 'no worker has judged it yet'}"


def _types_words(snapshot: Snapshot, empty: EmptyPool) -> str:
    catalogue = snapshot.catalogues.get(empty.pool)
    if catalogue is None or catalogue.error:
        return f"its instance types cannot be listed{f': {catalogue.error}' if catalogue else ''}"
    if empty.because_of_min_values and not empty.too_few:
        return "the instance types that its requirements let through have fewer values than its minValues ask for"
    if not empty.suiting:
        return "its own requirements let no instance type through"
    short = short_of_pool(snapshot, snapshot.pools[empty.pool]) if empty.pool in snapshot.pools else ""
    nowhere = "its NodeClass has no image, subnet or price for any instance type that its requirements let through"
    words = "; ".join(filter(None, (empty.too_few, short)))
    return f"{words}; wider types or zones would help" if short else empty.words or nowhere
