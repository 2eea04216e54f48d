"""Changes the annotations of one NodePool, however often others change it meanwhile."""

from collections.abc import Callable, Mapping

from dovetail.activities.shared.writes.revisions import revised
from dovetail.model.pools import NodePool
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

    def differing(found: NodePool) -> MetadataChange | None:
        annotations = change_of(found)
        return MetadataChange(annotations=annotations) if annotations else None

    return await revised(pool, differing, pools.patch, pools.read)
