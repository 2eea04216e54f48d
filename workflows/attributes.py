"""The search attributes by which people find workflows.

Registered and checked when a worker starts. One event each, so a workflow sets them when it starts and changes only its
phase.
"""

from typing import Final

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

NODE_POOL: Final = SearchAttributeKey.for_keyword("DovetailNodePool")
NODE_CLAIM: Final = SearchAttributeKey.for_keyword("DovetailNodeClaim")
NODE: Final = SearchAttributeKey.for_keyword("DovetailNode")
REASON: Final = SearchAttributeKey.for_keyword("DovetailReason")
PHASE: Final = SearchAttributeKey.for_keyword("DovetailPhase")

ALL: Final = (NODE_POOL, NODE_CLAIM, NODE, REASON, PHASE)


def attributes(pool: str = "", claim: str = "", node: str = "", reason: str = "") -> TypedSearchAttributes:
    """The attributes of a workflow that is about to start, those that are known."""
    known = ((NODE_POOL, pool), (NODE_CLAIM, claim), (NODE, node), (REASON, reason))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in known if value])
