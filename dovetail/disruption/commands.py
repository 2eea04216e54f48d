"""A command: nodes that go together and what replaces them, as core thinks of it and as people read it (D-8 to D-10).

Made by the methods, turned into a DisruptionCommand by planning.py. The texts are upstream's, byte for byte: users grep
for them. The trap avoided: prices are added in the order of the candidates, never in that of a set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.model.notice import Notice
from dovetail.notices.decisions import decision_notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Nodes to disrupt, in order, and the nodes that must stand before they go."""

    reason: DisruptionReason
    candidates: tuple[Candidate, ...]
    replacements: tuple[Replacement, ...] = ()
    moved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # existing node -> pods that go there

    @property
    def decision(self) -> str:
        """D-8."""
        if not self.candidates:
            return "no-op"
        return "replace" if self.replacements else "delete"

    @property
    def price(self) -> float:
        """What its nodes cost now."""
        return sum(c.price for c in self.candidates)

    @property
    def savings(self) -> float:
        """D-10: an estimate; unknown prices count 0."""
        return self.price - sum(r.cheapest for r in self.replacements)

    @property
    def text(self) -> str:
        """D-9, without reason and id."""
        return _text(self.decision, [c.name for c in self.candidates], len(self.replacements))

    def text_for(self, candidate: Candidate) -> str:
        """D-9: what the Events of one of its nodes say."""
        if len(self.candidates) == 1:
            return self.text
        return f"{self.decision}: [{candidate.name}] (part of {len(self.candidates)}-node consolidation)"


def _text(decision: str, nodes: list[str], replacements: int) -> str:
    text = f"{decision}: [{', '.join(nodes)}]"
    if replacements == 0:
        return text
    return f"{text} -> [{replacements} replacement{'' if replacements == 1 else 's'}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One pool's part in a consolidation that was worked out, for metrics (D-126)."""

    pool: str
    policy: str
    approved: bool  # the whole command
    score: float | None = None  # None where the pool's policy weighs nothing
    pool_approves: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a method made of its candidates. `error`: it could not decide, in words."""

    commands: tuple[Command, ...] = ()
    blocks: tuple[tuple[Candidate, Block], ...] = ()
    notices: tuple[Notice, ...] = ()
    moves: tuple[Move, ...] = ()
    error: str = ""
    constrained: bool = False  # a candidate was passed over for want of an allowance
    timed_out: bool = False  # stopped before all candidates were tried
    look_again: float | None = None  # its nodes are being told this very moment: nothing is decided until then


def both(candidate: Candidate, reason: str, message: str) -> tuple[Notice, ...]:
    """D-186: the same Event on Node and NodeClaim."""
    return (
        decision_notice("Node", candidate.name, reason, message),
        decision_notice("NodeClaim", candidate.claim.name, reason, message),
    )
