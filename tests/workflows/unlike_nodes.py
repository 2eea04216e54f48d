"""A plan for unlike nodes: every command has lists of instance types of its own, as long as a real catalogue's."""

from dovetail.messages.plans import DisruptionCommand, DisruptionPlan, ProposedNode, Seen, Target
from dovetail.model.nodes import NodeClassRef

SEEN = Seen(taken_at=0.0, versions=(("Node", 1000), ("NodeClaim", 1000)))


def a_list(number: int, types: int) -> tuple[str, ...]:
    return tuple(f"family-{number}.{size:04}xlarge" for size in range(types))


def unlike_plan(commands: int, types: int = 700) -> DisruptionPlan:
    """A wave of drift, one node a command, each replaced by a node of other types."""
    return DisruptionPlan(
        seen=SEEN,
        commands=tuple(a_replacement_of(number) for number in range(commands)),
        type_lists=tuple(a_list(number, types) for number in range(commands)),
    )


def a_replacement_of(number: int) -> DisruptionCommand:
    target = Target(
        claim=f"claim-{number}",
        claim_uid=f"uid-{number}",
        node=f"node-{number}",
        node_uid=f"node-uid-{number}",
        provider_id=f"test://{number}",
        pool="pool",
    )
    made = ProposedNode(
        pool="pool",
        pool_uid="pool-uid",
        node_class=NodeClassRef(group="test", kind="TestNodeClass", name="default"),
        requirements=(),
        type_list=number,
    )
    return DisruptionCommand(reason="Drifted", method="drift", targets=(target,), replacements=(made,))
