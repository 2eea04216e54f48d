"""The ids of traces and spans: derived, never random.

A workflow outlives every worker, so no worker can keep the id of its span. All ids follow from what the record already
holds: the trace of a plan has the plan's own id, as in the annotation dovetail.sh/plan and in the id of the
disruption's workflow; a span's follows from its run and step. So two workers derive the same ids, even after a kill,
and a replay needs no randomness. Whether a trace is kept follows from its id too.
"""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dovetail.messages.plans import Seen

_RANDOM: Final = 1 << 56  # the lowest 56 bits of a trace id, by the W3C


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanId:
    """A span, and whether its trace is kept."""

    trace: str  # 32 hexadecimal digits
    span: str  # 16
    kept: bool = True

    def within(self, *parts: object) -> "SpanId":
        """The span of the same trace with these name parts."""
        return SpanId(trace=self.trace, span=_digest(self.trace, *parts)[:16], kept=self.kept)


def of_plan(plan_id: str, share: float) -> SpanId:
    """The first span of everything that a plan starts."""
    trace = plan_id.replace("-", "")
    if len(trace) != 32 or set(trace) - set("0123456789abcdef"):
        trace = _digest("plan", plan_id)[:32]
    return _first(trace, share)


def of_decision(planner: str, seen: "Seen", share: float) -> SpanId:
    """The span of a decision, by the workflow that asked for it and what it had seen."""
    return _first(_digest("decision", planner, repr(seen.taken_at), *seen.versions)[:32], share)


def of_run(workflow_id: str, run_id: str, share: float) -> SpanId:
    """The first span of a workflow that was not started by anything with a trace."""
    return _first(_digest("run", workflow_id, run_id)[:32], share)


def is_kept(trace: str, share: float) -> bool:
    return int(trace, 16) % _RANDOM < share * _RANDOM


def _first(trace: str, share: float) -> SpanId:
    return SpanId(trace=trace, span=_digest("first", trace)[:16], kept=is_kept(trace, share))


def _digest(*parts: object) -> str:
    return hashlib.sha256("\x00".join(str(part) for part in parts).encode()).hexdigest()
