"""The health that a DisruptionPolicy asks for: how many of its nodes may be unready while others begin to leave.

The nodes themselves show a failure. The policy's status remembers a past one, so that neither a restart nor a lost
database shortens the time for which health must pass.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Annotated, Final

from dovetail.model import names
from dovetail.model.nodes import Node, NodeClaim
from dovetail.model.own.forms import Key, Moment, between
from dovetail.model.own.gates import NOT_ASKED, AlertsRule, Answer, AskedGate, GateResult, GateVerdict

ALERTS: Final = "alerts"  # the name of what is asked
ASKED_EVERY: Final = 30.0  # seconds; an answer counts for two minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Nodes that have been initialised and are not leaving, and how many of them are not ready."""

    nodes: int = 0
    not_ready: int = 0
    fault: str = ""  # why that is unknown

    def __add__(self, other: "Readiness") -> "Readiness":
        """The readiness of both together; with a fault there are no numbers."""
        return Readiness(nodes=self.nodes + other.nodes, not_ready=self.not_ready + other.not_ready)


class HealthResult(StrEnum):
    PASSING = "Passing"
    FAILING = "Failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """What a policy's status remembers; there is none before the first failure. `until`: when nodes may begin again."""

    result: Annotated[HealthResult, Key("state")]
    since: Moment
    until: Moment | None = None
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
    stable_for: Annotated[float, between("0s", "168h")]
    alerts: AlertsRule | None = None

    @property
    def gate(self) -> AskedGate | None:
        return None if self.alerts is None else AskedGate(name=ALERTS, alerts=self.alerts, every=ASKED_EVERY)

    def judged(self, known: GateVerdict | None, answers: Mapping[str, Answer], now: float) -> GateVerdict | None:
        """What is known about alerts now. Without an answer the last verdict stays, for as long as it counts."""
        gate = self.gate
        if gate is None:
            return None
        answer = answers.get(gate.question)
        passed = known is not None and known.result == GateResult.PASSING
        if answer is not None and answer.fault and known is not None and passed and not gate.why_not(known, now):
            return known
        return gate.judged(known, answer, now)

    def why_blind(self, said: GateVerdict | None, now: float) -> str:
        """Why it is unknown whether alerts fire; empty if it is known, or need not be."""
        gate = self.gate
        if gate is None or (said is not None and said.result == GateResult.FAILING):
            return ""
        if said is None or said.result == GateResult.UNKNOWN:
            return f"nobody can tell whether alerts fire: {NOT_ASKED if said is None else said.message}"
        return "" if not gate.why_not(said, now) else f"nobody can tell whether alerts fire: {gate.why_not(said, now)}"

    def _why_alerted(self, said: GateVerdict | None) -> str:
        """Why the verdict in the status is a failure; one that was never given is none yet."""
        if self.alerts is None or said is None or not said.asked or said.result == GateResult.PASSING:
            return ""
        is_blind = said.result == GateResult.UNKNOWN
        return f"nobody can tell whether alerts fire: {said.message}" if is_blind else said.message

    def why_failing(self, found: Readiness, said: GateVerdict | None = None) -> str:
        """Why it fails; empty if it passes. A share is not rounded. `said`: the status's verdict on alerts."""
        if found.fault:
            return f"the nodes cannot be judged: {found.fault}"
        alerted = self._why_alerted(said)
        if alerted:
            return alerted
        text, not_ready = self.max_not_ready, found.not_ready
        share = text.endswith("%")
        fails = not_ready * 100 > int(text[:-1]) * found.nodes if share else not_ready > int(text)
        return f"{not_ready} of {found.nodes} nodes are not ready, at most {text} may be" if fails else ""

    def remembered(
        self, known: HealthState | None, found: Readiness, now: float, said: GateVerdict | None = None
    ) -> HealthState | None:
        why = self.why_failing(found, said)
        if why and (known is None or known.result == HealthResult.PASSING):
            return HealthState(result=HealthResult.FAILING, since=float(int(now)), message=why)
        if why or known is None:
            return known
        since = known.since if known.result == HealthResult.PASSING else float(ceil(now))
        return HealthState(
            result=HealthResult.PASSING, since=since, until=since + self.stable_for, message=known.message
        )

    def unhealthy(
        self, known: HealthState | None, found: Readiness, now: float, said: GateVerdict | None = None
    ) -> Unhealthy | None:
        """What keeps nodes from beginning to leave now."""
        why = self.why_failing(found, said) or self.why_blind(said, now)
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
    """The readiness of each NodePool's nodes. A node that is gone or cannot be read although its claim exists is not
    ready."""
    counted, not_ready = Counter[str](), Counter[str]()
    for claim in claims:
        if claim.deleting_since is not None or not claim.is_true(names.INITIALIZED_CONDITION):
            continue
        node = nodes.get(claim.node_name)
        ready = node.condition(names.READY) if node is not None else None
        pool = claim.labels.get(names.NODE_POOL, "")
        counted[pool] += 1
        not_ready[pool] += ready is None or ready.status != "True"
    return {pool: Readiness(nodes=number, not_ready=not_ready[pool]) for pool, number in counted.items()}
