"""A rate of a DisruptionPolicy: how many nodes may begin to leave within any period of a given length."""

from dataclasses import dataclass
from typing import Annotated, Final

from dovetail.model.own.forms import between
from dovetail.model.pools import NodePool

NODES: Final = "nodes"  # how many nodes a pool has, in its status.resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """No more than `nodes` (a number, or a percentage of the pool's) within any `per` seconds, for these reasons or
    all."""

    nodes: str
    per: Annotated[float, between("1m", "168h")]
    reasons: frozenset[str] = frozenset()

    def names(self, reason: str) -> bool:
        return not self.reasons or reason in self.reasons

    @property
    def words(self) -> str:
        return f"{self.per / 3600:g}h" if self.per >= 3600 else f"{self.per / 60:g}m"

    def allowed(self, pool: NodePool) -> int:
        """How many of the pool's nodes: a percentage is of its current nodes, rounded down, at least one unless it is
        none."""
        share = int(self.nodes.removesuffix("%"))
        if not self.nodes.endswith("%"):
            return share
        return max(1, share * (pool.usage or {}).get(NODES, 0) // 100) if share else 0
