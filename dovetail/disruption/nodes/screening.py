"""Judging all nodes of a snapshot, each once (DIS-25 to DIS-48).

A node that cannot be judged stays, with a block that names the culprit: one of its pods, or the node itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.disruption.nodes.candidates import Block, Candidate, candidate_of, node_blocks, pod_blocks
from dovetail.disruption.nodes.costs import reschedule_cost
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.model.objects.judging import Judging, Unjudged
from dovetail.model.objects.pod_index import asking_to_stay
from dovetail.model.objects.pod_rules import is_active, is_protected
from dovetail.model.pods import Pod
from dovetail.model.reasons.disruption_reasons import WhyNot
from dovetail.notices.decisions import pod_notice
from dovetail.notices.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """All nodes, judged once: the candidates of each class, every block, and the notices about pods."""

    graceful: tuple[Candidate, ...]
    eventual: tuple[Candidate, ...]
    blocked: tuple[tuple[Member, Block], ...]  # in the graceful class; those of the eventual class are among them
    waived: frozenset[str]  # nodes blocked only for the graceful class
    notices: tuple[Notice, ...]

    def candidates(self, eventual: bool) -> tuple[Candidate, ...]:
        """The candidates of one class, by name."""
        return self.eventual if eventual else self.graceful

    def blocks(self, eventual: bool) -> tuple[tuple[Member, Block], ...]:
        return tuple(b for b in self.blocked if not (eventual and b[0].name in self.waived))


def not_judged(fault: Unjudged) -> Block:
    """The block of a node that cannot be judged, or has a pod that cannot; it is waived for no class."""
    return Block(why=WhyNot.NOT_JUDGED, message=fault.says)


def pods_not_judged(fleet: Fleet, member: Member) -> Iterator[Block]:
    """Blocks for the pods of a node that make a check fail, each judged by itself."""
    for pod in member.pods:
        found = fleet.judging.judge(pod, "disruption", _judged_alone, fleet, pod)
        if isinstance(found, Unjudged):
            yield not_judged(found)


def _judged_alone(fleet: Fleet, pod: Pod) -> None:
    """Everything that a decision asks about one pod of a candidate."""
    is_protected(pod, fleet.now)
    pod_notice(pod, fleet.now)
    fleet.pdbs.blocking(pod)
    fleet.pdbs.needs_room(pod)
    reschedule_cost((pod,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """One node: its first block, and the candidate if it is one in any class."""

    block: Block | None = None
    candidate: Candidate | None = None
    notices: tuple[Notice, ...] = ()


def _judge(fleet: Fleet, member: Member) -> _Judged:
    first = next(node_blocks(fleet, member), None)
    if first is not None:
        return _Judged(block=first)
    notices = tuple(_pod_notices(member, fleet.now))
    block, candidate = next(pod_blocks(fleet, member), None), candidate_of(fleet, member)
    if block is not None and candidate.claim.termination_grace is None:
        return _Judged(block=block, notices=notices)
    return _Judged(block=block, candidate=candidate, notices=notices)


def judge(fleet: Fleet, member: Member) -> _Judged:
    """Judge one node. If that fails, name the pod that is at fault, or else the node itself."""
    # The first try names nobody: which of the objects is at fault is found out by judging each alone.
    judged = Judging().judge(member, "disruption", _judge, fleet, member)
    if not isinstance(judged, Unjudged):
        return judged
    block = next(pods_not_judged(fleet, member), None)
    return _Judged(block=block or not_judged(_fault_of(fleet, member)))


def _fault_of(fleet: Fleet, member: Member) -> Unjudged:
    """The fault of a node whose pods can be judged."""
    found = fleet.judging.judge(member.node or member.claim, "disruption", _judge, fleet, member)
    assert isinstance(found, Unjudged)  # the same question has just failed
    return found


def judged_blocks(fleet: Fleet, member: Member) -> tuple[Block, ...]:
    """Every block of a node, those of its pods included."""
    found = Judging().judge(member, "disruption", lambda: (*node_blocks(fleet, member), *pod_blocks(fleet, member)))
    if not isinstance(found, Unjudged):
        return found
    return tuple(pods_not_judged(fleet, member)) or (not_judged(_fault_of(fleet, member)),)


def screen(fleet: Fleet) -> Screening:
    graceful: list[Candidate] = []
    eventual: list[Candidate] = []
    blocked: list[tuple[Member, Block]] = []
    waived: set[str] = set()
    notices: list[Notice] = []
    for member in fleet.members:
        judged = judge(fleet, member)
        notices.extend(judged.notices)
        if judged.block is not None:
            blocked.append((member, judged.block))
        if judged.candidate is None:
            continue
        eventual.append(judged.candidate)
        if judged.block is None:
            graceful.append(judged.candidate)
        else:
            waived.add(member.name)
    return Screening(
        graceful=tuple(graceful),
        eventual=tuple(eventual),
        blocked=tuple(blocked),
        waived=frozenset(waived),
        notices=tuple(notices),
    )


def _pod_notices(member: Member, now: float) -> Iterator[Notice]:
    for pod in member.pods.kept(asking_to_stay):
        if is_active(pod):
            notice = pod_notice(pod, now)
            if notice is not None:
                yield notice
            if is_protected(pod, now):
                return  # the first protected pod settles it; the others are not judged
