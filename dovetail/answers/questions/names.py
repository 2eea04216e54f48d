"""The names that a shell completes."""

from dataclasses import dataclass

from dovetail.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesAnswer:
    """Nodes and claims of pools, pools, and waiting pods, sorted."""

    nodes: tuple[str, ...]
    claims: tuple[str, ...]
    pools: tuple[str, ...]
    pods: tuple[str, ...]


def names_of(snapshot: Snapshot) -> NamesAnswer:
    waiting = (p.key for p in snapshot.pods.values() if p.unschedulable and not p.node_name)
    return NamesAnswer(
        nodes=tuple(sorted(c.node_name for c in snapshot.claims.values() if c.node_name)),
        claims=tuple(sorted(snapshot.claims)),
        pools=tuple(sorted(snapshot.pools)),
        pods=tuple(sorted(waiting)),
    )
