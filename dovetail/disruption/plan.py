"""Turns commands into a plan, which a workflow carries out.

Lists of instance types are stored once per plan. Nothing in a plan depends on the order of a set, which differs from
process to process.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dovetail.disruption.commands import Command
from dovetail.disruption.nodes.candidates import Block, Candidate
from dovetail.disruption.nodes.written_requests import replace_asked_by
from dovetail.disruption.rounds import Method, Round
from dovetail.disruption.shares import shares_of
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProposedNode, Seen, Target
from dovetail.messages.sizes import encoded_bytes
from dovetail.model import names
from dovetail.model.reasons.disruption_reasons import DisruptionReason, WhyNot
from dovetail.placement.proposals import proposed_nodes

TOO_LARGE: Final = Block(
    why=WhyNot.TOO_LARGE, message="Its replacement is more than a plan can carry", event="DisruptionBlocked"
)


def plan_of(round_: Round, method: Method, commands: tuple[Command, ...]) -> DisruptionPlan:
    snapshot, settings = round_.snapshot, round_.settings
    lists: dict[tuple[str, ...], int] = {}
    return DisruptionPlan(
        seen=Seen.of(snapshot),
        commands=tuple(planned(method.name, command, settings.well_known, lists) for command in commands),
        type_lists=tuple(lists),
        validate_after=settings.validate_after if method.reason.waits else 0.0,
    )


class PlanSize:
    """The encoded bytes of a plan while its commands are chosen: each list of instance types counts once."""

    def __init__(self, round_: Round) -> None:
        self.limit, self.well_known = round_.settings.plan_bytes, round_.settings.well_known
        self.bytes, self._lists = 0, dict[tuple[str, ...], int]()

    def takes(self, command: Command) -> bool:
        """Whether the command still fits; then it counts."""
        size, lists = self._size_with(command)
        if size > self.limit:
            return False
        self.bytes, self._lists = size, lists
        return True

    def takes_target(self, candidate: Candidate) -> bool:
        """The same for one more node of a command without replacements, which names it twice."""
        size = self.bytes + encoded_bytes(target_of(candidate, DisruptionReason.EMPTY)) + encoded_bytes(candidate.name)
        if size > self.limit:
            return False
        self.bytes = size
        return True

    def _size_with(self, command: Command) -> tuple[int, dict[tuple[str, ...], int]]:
        lists = dict(self._lists)
        written = planned(str(command.reason), command, self.well_known, lists)
        added = tuple(lists)[len(self._lists) :]
        return self.bytes + encoded_bytes(written) + sum(encoded_bytes(each) for each in added), lists


def first_that_fit(
    round_: Round, commands: Iterable[Command]
) -> tuple[tuple[Command, ...], tuple[tuple[Candidate, Block], ...]]:
    """As many commands as fit in one plan, the others following in the next; and those too large for any plan."""
    size, taken = PlanSize(round_), list[Command]()
    blocks: list[tuple[Candidate, Block]] = []
    for command in commands:
        if len(taken) == round_.settings.wave_size:
            break
        if size.takes(command):
            taken.append(command)
        elif is_too_large(round_, command):
            blocks.extend((candidate, TOO_LARGE) for candidate in command.candidates)
        else:
            break
    return tuple(taken), tuple(blocks)


def is_too_large(round_: Round, command: Command) -> bool:
    """Whether a plan of this command alone would be too large to carry."""
    return not PlanSize(round_).takes(command)


def planned(
    method: str, command: Command, well_known: frozenset[str], lists: dict[tuple[str, ...], int]
) -> DisruptionCommand:
    """The command as a plan holds it; lists of types that are not in the plan yet are added."""
    return DisruptionCommand(
        reason=str(command.reason),
        method=method,
        targets=tuple(target_of(c, command.reason) for c in command.candidates),
        replacements=tuple(_proposed(made, well_known, lists) for made in command.replacements),
        destinations=tuple(sorted(command.moved)),
        reboots=command.reboots,
        terminates_first=command.terminates_first,
        drain_first=command.at_once or any(_drains_first(command, each) for each in command.candidates),
        savings=command.promised,
        price=command.price,
        asked_by=_asked_by(command),
        shares=shares_of(command.candidates),
        summary=f"{command.text} (savings: ${command.savings:.2f})",
    )


def _drains_first(command: Command, candidate: Candidate) -> bool:
    """Whether its pods leave before its delete: the pool says so, or a person asks for a node whose grace period, which
    begins with the delete, would let pods pass their PDBs."""
    asked = command.reason == DisruptionReason.REQUESTED and candidate.claim.termination_grace is not None
    return asked or candidate.pool.annotations.get(names.DRAIN_FIRST) == "true"


def _asked_by(command: Command) -> str:
    """Who asked for the replacement of its nodes; nobody, if drift takes such a node."""
    if command.reason != DisruptionReason.REQUESTED:
        return ""
    return ", ".join(sorted({who for c in command.candidates if (who := replace_asked_by(c.claim))}))


def _proposed(made: Replacement, well_known: frozenset[str], lists: dict[tuple[str, ...], int]) -> ProposedNode:
    if made.static is not None:
        return replace(made.static, type_list=lists.setdefault((), len(lists)))
    assert made.node is not None  # a replacement is one or the other
    node = replace(made.node, requirements=made.requirements, types=made.types)
    found, names_of_types = proposed_nodes((node,), well_known)
    return replace(found[0], type_list=lists.setdefault(names_of_types[0], len(lists)))


def target_of(candidate: Candidate, reason: DisruptionReason) -> Target:
    node, claim = candidate.member.node, candidate.claim
    fault = candidate.fault if reason == DisruptionReason.UNHEALTHY else None
    return Target(
        claim=candidate.claim.name,
        claim_uid=candidate.claim.uid,
        node=candidate.name,
        node_uid=node.uid if node else "",
        provider_id=candidate.claim.provider_id,
        pool=candidate.pool.name,
        pods=tuple(sorted(pod.uid for pod in candidate.pods)),
        capacity_type=candidate.capacity_type,
        policy=_policy_label(candidate.pool.disruption.policy, reason),
        mode=candidate.claim.termination_mode,
        grace=claim.termination_grace if fault is None else fault.bound(claim),
        condition="" if fault is None else fault.condition.type,
    )


def _policy_label(policy: str, reason: DisruptionReason) -> str:
    """The policy in snake case, for the reasons to which it applies (DIS-190)."""
    if not reason.is_governed_by_policy:
        return ""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in policy).lstrip("_")


def text_for(command: DisruptionCommand, node: str) -> str:
    """What the Events of one node of a planned command say (DIS-9)."""
    if len(command.targets) == 1:
        return command.summary.rpartition(" (savings: ")[0]
    decision = "replace" if command.replacements else "delete"
    return f"{decision}: [{node}] (part of {len(command.targets)}-node consolidation)"
