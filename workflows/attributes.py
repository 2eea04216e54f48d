"""The search attributes by which people find workflows.

Registered and checked when a worker starts. Each change is a write to the server's index, which costs more than the
step that it describes (measured: decision record 50). So a workflow has them from its start, and changes only its
phase, and that only when it enters a phase that may last. How a closed workflow ended is its result.
"""

from typing import Final

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

NODE_POOL: Final = SearchAttributeKey.for_keyword("DovetailNodePool")
NODE_CLAIM: Final = SearchAttributeKey.for_keyword("DovetailNodeClaim")
NODE: Final = SearchAttributeKey.for_keyword("DovetailNode")
REASON: Final = SearchAttributeKey.for_keyword("DovetailReason")
PHASE: Final = SearchAttributeKey.for_keyword("DovetailPhase")

# The phases that may last, of all workflows.
LASTING: Final = frozenset(
    {
        "registering",
        "initialising",
        "waiting for replacements",
        "draining before the delete",
        "draining",
        "terminating",
        "undoing",
    }
)

ALL: Final = (NODE_POOL, NODE_CLAIM, NODE, REASON, PHASE)


def attributes(
    pool: str = "", claim: str = "", node: str = "", reason: str = "", phase: str = ""
) -> TypedSearchAttributes:
    """The attributes of a workflow that is about to start, those that are known."""
    known = ((NODE_POOL, pool), (NODE_CLAIM, claim), (NODE, node), (REASON, reason), (PHASE, phase))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in known if value])


def show_phase(phase: str) -> None:
    """Let searches find the phase, if it may last."""
    if phase in LASTING:
        workflow.upsert_search_attributes([PHASE.value_set(phase)])
