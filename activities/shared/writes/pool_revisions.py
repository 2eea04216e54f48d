"""Changes the annotations of one NodePool, however often others change it meanwhile."""

from collections.abc import Callable, Mapping

from dovetail.activities.shared.writes.revisions import TRIES
from dovetail.model.pools import NodePool
from dovetail.ports.failures import Conflict
from dovetail.ports.objects import MetadataChange, NodePools

Annotations = Mapping[str, str | None]


def changed(known: NodePool, new: NodePool) -> Annotations:
    """The annotations that differ between the two."""
    keys = known.annotations.keys() | new.annotations.keys()
    found = {key: new.annotations.get(key) for key in sorted(keys)}
    return {key: text for key, text in found.items() if text != known.annotations.get(key)}


async def revise_pool(
    pools: NodePools, pool: NodePool, change_of: Callable[[NodePool], Annotations]
) -> NodePool | None:
    """The pool with the change; None if it is gone. `change_of` answers nothing if there is nothing to change."""
    for _ in range(TRIES):
        change = change_of(pool)
        if not change:
            return pool
        try:
            return await pools.patch(pool, MetadataChange(annotations=change))
        except Conflict:
            live = await pools.read(pool.name)
            if live is None or live.uid != pool.uid:
                return None
            pool = live
    raise Conflict(f"NodePool/{pool.name}", f"changed by others {TRIES} times in a row")
