"""The unhealthy nodes that may be repaired.

Neither do-not-disrupt on the Node keeps one that is broken, nor that it was never initialised, nor that its room is
promised: the pods on their way to it may be those that wait for it to be well, and are planned for anew once it leaves.
Pods that hold it are waited for as long as its drain may last.
"""

from dataclasses import replace
from typing import Final

from dovetail.disruption.nodes.candidates import Candidate, candidate_of, node_blocks, pod_blocks
from dovetail.disruption.nodes.fleet import Fleet, Member
from dovetail.lifecycle.faults import NodeFault
from dovetail.model.objects.judging import Unjudged
from dovetail.model.reasons.disruption_reasons import WhyNot

WAIVED: Final = frozenset({WhyNot.NOT_INITIALIZED, WhyNot.NODE_PROTECTED, WhyNot.PROMISED})


def repairable(fleet: Fleet) -> tuple[Candidate, ...]:
    """By name. What else keeps a node is named by the screening of all nodes."""
    found = []
    for name, fault in fleet.faults.items():
        member = fleet.by_name[name]
        judged = fleet.judging.judge(member.node, "repair", _candidate, fleet, member, fault)
        if judged is not None and not isinstance(judged, Unjudged):
            found.append(judged)
    return tuple(found)


def _candidate(fleet: Fleet, member: Member, fault: NodeFault) -> Candidate | None:
    if any(block.why not in WAIVED for block in node_blocks(fleet, member)):
        return None
    return replace(candidate_of(fleet, member), fault=fault, held=next(pod_blocks(fleet, member), None))
