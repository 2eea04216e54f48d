"""Turns commands into a plan, which a workflow carries out.

Lists of instance types are stored once per plan. Nothing in a plan depends on the order of a set, which differs from
process to process.
"""

from dataclasses import replace

from dovetail.disruption.commands import Command
from dovetail.disruption.nodes.candidates import Candidate
from dovetail.disruption.rounds import Method, Round
from dovetail.disruption.simulation.simulation import Replacement
from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProposedNode, Seen, Target
from dovetail.model import names
from dovetail.model.disruption_reasons import DisruptionReason
from dovetail.placement.proposals import proposed_nodes


def plan_of(round_: Round, method: Method, commands: tuple[Command, ...]) -> DisruptionPlan:
    """The plan that carries these commands out."""
    snapshot, settings = round_.snapshot, round_.settings
    lists: dict[tuple[str, ...], int] = {}
    return DisruptionPlan(
        seen=Seen.of(snapshot),
        commands=tuple(_command(method, command, settings.well_known, lists) for command in commands),
        type_lists=tuple(lists),
        validate_after=settings.validate_after if method.reason.waits else 0.0,
    )


def _command(
    method: Method, command: Command, well_known: frozenset[str], lists: dict[tuple[str, ...], int]
) -> DisruptionCommand:
    return DisruptionCommand(
        reason=str(command.reason),
        method=method.name,
        targets=tuple(target_of(c, command.reason) for c in command.candidates),
        replacements=tuple(_proposed(made, well_known, lists) for made in command.replacements),
        destinations=tuple(sorted(command.moved)),
        drain_first=any(c.pool.annotations.get(names.DRAIN_FIRST) == "true" for c in command.candidates),
        savings=command.savings,
        summary=f"{command.text} (savings: ${command.savings:.2f})",
    )


def _proposed(made: Replacement, well_known: frozenset[str], lists: dict[tuple[str, ...], int]) -> ProposedNode:
    if made.static is not None:
        return replace(made.static, type_list=lists.setdefault((), len(lists)))
    assert made.node is not None  # a replacement is one or the other
    node = replace(made.node, requirements=made.requirements, types=made.types)
    found, names_of_types = proposed_nodes((node,), well_known)
    return replace(found[0], type_list=lists.setdefault(names_of_types[0], len(lists)))


def target_of(candidate: Candidate, reason: DisruptionReason) -> Target:
    """One node to disrupt for that reason."""
    node = candidate.member.node
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
    )


def _policy_label(policy: str, reason: DisruptionReason) -> str:
    """The policy in snake case, for the reasons that it decides about (DIS-190)."""
    if not reason.is_governed_by_policy:
        return ""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in policy).lstrip("_")


def text_for(command: DisruptionCommand, node: str) -> str:
    """What the Events of one node of a planned command say (DIS-9)."""
    if len(command.targets) == 1:
        return command.summary.rpartition(" (savings: ")[0]
    decision = "replace" if command.replacements else "delete"
    return f"{decision}: [{node}] (part of {len(command.targets)}-node consolidation)"
