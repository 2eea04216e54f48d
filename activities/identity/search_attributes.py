"""The search attributes by which people find workflows.

They are registered and checked when a worker starts; they take six of the ten of their type that a namespace on a SQL
database has. A workflow has them from its start, whether its parent, a worker or a step of the Caretaker's starts it.
"""

from typing import Final, TypedDict, Unpack

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from dovetail.messages.workflow_types import LAUNCH_NODE, TERMINATE_NODE

CLUSTER: Final = SearchAttributeKey.for_keyword("DovetailCluster")
NODE_POOL: Final = SearchAttributeKey.for_keyword("DovetailNodePool")
NODE_CLAIM: Final = SearchAttributeKey.for_keyword("DovetailNodeClaim")
NODE: Final = SearchAttributeKey.for_keyword("DovetailNode")
REASON: Final = SearchAttributeKey.for_keyword("DovetailReason")
PHASE: Final = SearchAttributeKey.for_keyword("DovetailPhase")

ALL: Final = (CLUSTER, NODE_POOL, NODE_CLAIM, NODE, REASON, PHASE)

# By what phase searches find a claim's owner from its start. A termination's first that may last is the drain; the
# taint before it is there at once.
FIRST_PHASES: Final = {LAUNCH_NODE: "launching", TERMINATE_NODE: "draining"}


class Subject(TypedDict, total=False):
    """What a workflow works on and why, as far as that is known when it starts."""

    pool: str
    claim: str
    node: str
    reason: str
    phase: str


def attributes(cluster: str, **known: Unpack[Subject]) -> TypedSearchAttributes:
    """The attributes of a workflow that is about to start: its cluster's name, and what else is known."""
    values = (
        (CLUSTER, cluster),
        (NODE_POOL, known.get("pool")),
        (NODE_CLAIM, known.get("claim")),
        (NODE, known.get("node")),
        (REASON, known.get("reason")),
        (PHASE, known.get("phase")),
    )
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in values if value])
