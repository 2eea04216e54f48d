"""Commands as the methods make them: nodes that leave together, and what replaces them (DIS-8 to DIS-10).

The texts are upstream's, byte for byte, because users search for them. Prices are added in the order of the candidates,
so that the sum is the same in every process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.messages.plans import decision_of
from dovetail.model.reasons.disruption_reasons import DisruptionReason
from dovetail.notices.decisions import decision_notice
from dovetail.notices.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Nodes to disrupt, in order, and the nodes that must be ready before they leave."""

    reason: DisruptionReason
    candidates: tuple[Candidate, ...]
    replacements: tuple[Replacement, ...] = ()
    moved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # existing node -> pods that move there
    at_once: bool = False  # waits for nothing: its pods get their nodes as they are evicted
    reboots: bool = False  # its instance is rebooted in place
    terminates_first: str = ""  # why it leaves before its replacement is made
    beside: float = 0.0  # saved an hour in addition to instances, by having fewer nodes

    @property
    def decision(self) -> str:
        """What is done, in upstream's words (DIS-8)."""
        if not self.candidates:
            return "no-op"
        return decision_of(self)

    @property
    def price(self) -> float:
        return sum(c.price for c in self.candidates)

    @property
    def savings(self) -> float:
        """The estimated savings; unknown prices count as 0 (DIS-10). 0 if the replacement is not known yet."""
        if self.at_once or self.reboots:
            return 0.0
        return self.price + self.beside - sum(r.cheapest for r in self.replacements)

    @property
    def promised(self) -> float:
        """The savings that plans, the record and metrics state: the same, but 0 if the template of a static pool
        leaves the type to the launch. Upstream's words count such a replacement as free."""
        return 0.0 if any(made.static is not None for made in self.replacements) else self.savings

    @property
    def text(self) -> str:
        """The command in upstream's words, without reason and id (DIS-9)."""
        return _text(self.decision, [c.name for c in self.candidates], len(self.replacements))

    def text_for(self, candidate: Candidate) -> str:
        """What the Events of one of its nodes say (DIS-9)."""
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
    """One pool's part in a consolidation that was worked out; metrics call it a move (DIS-126)."""

    pool: str
    policy: str
    approved: bool  # the whole command
    score: float | None = None  # None if the pool's policy does not weigh
    pool_approves: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a method found among its candidates. `error`: why it could not decide."""

    commands: tuple[Command, ...] = ()
    blocks: tuple[tuple[Candidate, Block], ...] = ()
    notices: tuple[Notice, ...] = ()
    moves: tuple[Move, ...] = ()
    error: str = ""
    timed_out: bool = False  # stopped before all candidates were tried
    look_again: float | None = None  # conditions are being written now: nothing is decided before that moment


def both(candidate: Candidate, reason: str, message: str) -> tuple[Notice, ...]:
    """The same notice on Node and NodeClaim (DIS-186)."""
    return (
        decision_notice("Node", candidate.name, reason, message),
        decision_notice("NodeClaim", candidate.claim.name, reason, message),
    )
