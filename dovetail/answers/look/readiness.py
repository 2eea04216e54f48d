"""Why a NodePool is not ready, in the words of what stands on it, and where to mend it."""

from dovetail.lifecycle.pool_readiness import CLASS_NOT_FOUND
from dovetail.model.names import CLASS_READY, READY
from dovetail.model.pools import NodePool


def not_ready_words(pool: NodePool) -> str:
    """What its conditions say, each that is not True and says why."""
    faults = [c for c in pool.conditions if c.status != "True" and c.type != READY and c.message]
    return "; ".join(f"{c.type}: {c.message}" for c in faults)


def where_to_mend(pool: NodePool) -> str:
    """The command that shows what to change: of the NodeClass where that is at fault, else of the pool itself."""
    reference = pool.template.node_class
    of_class = [c for c in pool.conditions if c.type == CLASS_READY and c.status != "True"]
    if not of_class:
        return f"kubectl edit nodepool {pool.name}"
    kind = f"{reference.kind.lower()}.{reference.group}"  # singular: a plural is not made by one letter
    return (
        f"kubectl get {kind}" if of_class[0].reason == CLASS_NOT_FOUND else f"kubectl describe {kind} {reference.name}"
    )
