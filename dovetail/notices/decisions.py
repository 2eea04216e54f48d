"""What people are told about a decision: Kubernetes Events as data, in upstream's words (section 21).

Made from the closed-list reasons that the checks return, never inside a check. The trap avoided: a predicate that
publishes cannot be asked twice.
"""

from dataclasses import dataclass

from dovetail.model.pod_rules import format_moment, protection
from dovetail.model.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One Event to publish."""

    kind: str  # Node, NodeClaim, NodePool, Pod
    name: str  # namespace/name of a pod
    reason: str
    message: str
    type: str = "Normal"


def pod_notice(pod: Pod, now: float) -> Notice | None:
    """D-42: what evaluating a pod's do-not-disrupt annotation tells."""
    if pod.do_not_disrupt is None or pod.do_not_disrupt == "true":
        return None
    held = protection(pod, now)
    if held.fault:
        return Notice(
            kind="Pod",
            name=pod.key,
            reason="InvalidDoNotDisruptAnnotation",
            message=f"Invalid karpenter.sh/do-not-disrupt annotation: {held.fault}, ignoring annotation",
            type="Warning",
        )
    if held.until is None:
        return None
    if held.active:
        message = f"The karpenter.sh/do-not-disrupt grace period will elapse at {format_moment(held.until)}"
        return Notice(kind="Pod", name=pod.key, reason="DoNotDisruptUntil", message=message)
    message = "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable"
    return Notice(kind="Pod", name=pod.key, reason="DoNotDisruptGracePeriodElapsed", message=message)


def no_compatible_types(pool: str, because_of_min_values: bool) -> Notice:
    """S-227."""
    message = "NodePool requirements filtered out all compatible available instance types"
    if because_of_min_values:
        message += " due to minValues incompatibility"
    return Notice(kind="NodePool", name=pool, reason="NoCompatibleInstanceTypes", message=message, type="Warning")
