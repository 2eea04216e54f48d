"""The words for why a node stays, and what a person can do about it.

The messages beside the reasons are upstream's, because users grep for them; these lines say what they mean and what
lifts them. The reasons are a closed list in core, so every one has its words here.
"""

from collections.abc import Mapping
from typing import Final

from dovetail.disruption.explain import NodeExplanation
from dovetail.model import names
from dovetail.model.disruption_reasons import WhyNot
from dovetail.model.nodes import NodeClaim

# What lifts it; empty where nothing has to be done.
LIFTS: Final[Mapping[WhyNot, str]] = {
    WhyNot.BEING_DISRUPTED: "a disruption of it is under way; `dovetail history` shows it, `dovetail cancel` ends it",
    WhyNot.UNMANAGED: "it has no NodeClaim, so it is left alone",
    WhyNot.NO_NODE: "the instance has not joined the cluster yet; see the NodeClaim's conditions",
    WhyNot.NOT_INITIALIZED: "it becomes a candidate once initialised: ready, startup taints gone, resources registered",
    WhyNot.DELETING: "it is on its way out; `dovetail history` shows how far",
    WhyNot.NOMINATED: "pending pods are expected on it; ends 20 s after the last nomination",
    WhyNot.NODE_PROTECTED: f"take the annotation {names.DO_NOT_DISRUPT} off the Node",
    WhyNot.NO_POOL_LABEL: f"the label {names.NODE_POOL} is missing",
    WhyNot.POOL_NOT_FOUND: "its NodePool is gone, or its instance types cannot be listed (see `dovetail doctor`)",
    WhyNot.POD_PROTECTED: f"take {names.DO_NOT_DISRUPT} off the pod, or move the pod; drift goes on where the claim "
    "has a terminationGracePeriod",
    WhyNot.SEVERAL_PDBS: "the eviction API refuses pods that several PodDisruptionBudgets select: leave one",
    WhyNot.PDB_BLOCKS: "wait until the budget allows a disruption, or raise it",
    WhyNot.PROMISED: "pods on their way count on its room; ends when they are bound",
    WhyNot.RESTING: "its last replacement failed; it is tried again by itself, later each time",
    WhyNot.STATIC_POOL: "nodes of a static pool are not consolidated",
    WhyNot.DYNAMIC_POOL: "only for static pools",
    WhyNot.UNKNOWN_TYPE: "the cloud no longer lists its instance type, so it has no price to compare",
    WhyNot.NO_CAPACITY_TYPE: f"the label {names.CAPACITY_TYPE} is missing",
    WhyNot.NO_ZONE: f"the label {names.ZONE} is missing",
    WhyNot.CONSOLIDATION_OFF: "the pool says consolidateAfter: Never",
    WhyNot.BUFFER_PODS: "it holds room for a capacity buffer",
    WhyNot.IS_EMPTY: "it is empty: that is for the method emptiness",
    WhyNot.NOT_EMPTY: "it has pods that would need another place",
    WhyNot.POLICY_WHEN_EMPTY: "the pool's consolidationPolicy is WhenEmpty",
    WhyNot.NOT_QUIET: "wait: pods came or went a short time ago",
    WhyNot.NOT_DRIFTED: "it is as its NodePool and NodeClass ask",
    WhyNot.NOT_EXPIRED: "its expireAfter has not passed",
    WhyNot.NOT_ASKED_FOR: f"neither its pool nor its claim asks for {names.REPLACE_FIRST}",
    WhyNot.BUDGET: "the pool's disruption budget is used up; see the budgets",
    WhyNot.STATIC_SCALING: "the static pool is being scaled",
    WhyNot.NODE_LIMIT: "the pool's limits leave no room for its replacement",
    WhyNot.PODS_HAVE_NO_PLACE: "its pods fit nowhere else; `dovetail explain pod` tells why for pending pods",
    WhyNot.TOO_MANY_REPLACEMENTS: "its pods would need several new nodes, which is never cheaper by the rule",
    WhyNot.NO_POOL_READY: "no NodePool is ready",
    WhyNot.MIN_VALUES: "the cheaper types are fewer than a minValues asks for",
    WhyNot.NOT_CHEAPER: "nothing that holds its pods costs less",
    WhyNot.SPOT_TO_SPOT_OFF: "the feature gate SpotToSpotConsolidation is off",
    WhyNot.SPOT_CHOICE_TOO_SMALL: "a spot node is only replaced by one of at least 15 cheaper types",
    WhyNot.SCORE_TOO_LOW: "the saving is too small for the disturbance (policy Balanced)",
    WhyNot.OUT_OF_TIME: "the round ran out of time; it is tried again",
}


def lifts(why: str) -> str:
    """What lifts a reason."""
    return LIFTS.get(WhyNot(why), "") if why else ""


def verdict_of(found: NodeExplanation, claim: NodeClaim | None) -> str:
    """The answer in one line."""
    if claim is not None and claim.deleting_since is not None:
        return "it is being terminated: its NodeClaim is deleted, and there is no way back"
    blocked = [check for check in found.checks if not check.passes]
    if found.goes_for:
        return f"it would go now, for: {', '.join(found.goes_for)}"
    if blocked:
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        return f"it stays: {blocked[0].message}{more}"
    if found.outcome is not None and found.outcome.block is not None and _consolidatable(found):
        return f"it stays: {found.outcome.block.message}"
    return "it stays: no method has a reason to take it now"


def _consolidatable(found: NodeExplanation) -> bool:
    return any(m.passes and m.method in ("multi", "single") for m in found.methods)
