"""The health that a DisruptionPolicy asks for: how many of its nodes may be not ready while others begin to leave.

That it fails is seen in the nodes themselves. That it has failed a while ago is remembered by the policy's status, so
that neither a restart nor a lost database shortens the time for which it must pass.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Nodes that have been initialised and are not leaving, and how many of them are not ready."""

    nodes: int = 0
    not_ready: int = 0
    fault: str = ""  # why nobody can tell

    def __add__(self, other: "Readiness") -> "Readiness":
        """Of both; a fault has no numbers beside it."""
        return Readiness(nodes=self.nodes + other.nodes, not_ready=self.not_ready + other.not_ready)


class HealthResult(StrEnum):
    """What was seen."""

    PASSING = "Passing"
    FAILING = "Failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """What a policy's status remembers; there is none before the first failure. `until`: when nodes may begin again."""

    result: HealthResult
    since: float
    until: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unhealthy:
    """Why nothing may begin. `until`: None while it fails."""

    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRule:
    """`max_not_ready`: a number, or a percentage of the nodes."""

    max_not_ready: str
    stable_for: float

    def why_failing(self, found: Readiness) -> str:
        """Why it fails; empty where it passes. A share is not rounded."""
        if found.fault:
            return f"the nodes cannot be judged: {found.fault}"
        text, not_ready = self.max_not_ready, found.not_ready
        share = text.endswith("%")
        fails = not_ready * 100 > int(text[:-1]) * found.nodes if share else not_ready > int(text)
        return f"{not_ready} of {found.nodes} nodes are not ready, at most {text} may be" if fails else ""

    def remembered(self, known: HealthState | None, found: Readiness, now: float) -> HealthState | None:
        """What the status is to remember now."""
        why = self.why_failing(found)
        if why and (known is None or known.result == HealthResult.PASSING):
            return HealthState(result=HealthResult.FAILING, since=float(int(now)), message=why)
        if why or known is None:
            return known
        since = known.since if known.result == HealthResult.PASSING else float(ceil(now))
        return HealthState(
            result=HealthResult.PASSING, since=since, until=since + self.stable_for, message=known.message
        )

    def unhealthy(self, known: HealthState | None, found: Readiness, now: float) -> Unhealthy | None:
        """What keeps nodes from beginning to leave now."""
        why = self.why_failing(found)
        if why:
            return Unhealthy(why=why)
        if known is None:
            return None
        if known.result == HealthResult.FAILING:
            return Unhealthy(why=f"it must pass for {self.stable_for / 60:g}m after {known.message}")
        ends = known.since + self.stable_for
        if now >= ends:
            return None
        return Unhealthy(why=f"it passes again, after {known.message}", until=ends)


def readiness_by_pool(claims: Iterable[NodeClaim], nodes: Mapping[str, Node]) -> Mapping[str, Readiness]:
    """Those of each NodePool. A node that is gone or cannot be read although its claim stands is not ready."""
    found: dict[str, Readiness] = {}
    for claim in claims:
        if claim.deleting_since is not None or not claim.is_true(names.INITIALIZED_CONDITION):
            continue
        node = nodes.get(claim.node_name)
        ready = node.condition(names.READY) if node is not None else None
        one = Readiness(nodes=1, not_ready=int(ready is None or ready.status != "True"))
        pool = claim.labels.get(names.NODE_POOL, "")
        found[pool] = found.get(pool, Readiness()) + one
    return found
