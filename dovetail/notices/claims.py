"""Notices about NodeClaims.

Reasons and types are upstream's (EVT-5 to EVT-8), so that dashboards and alerts made for it keep working.
"""

from dovetail.model.nodes import NodeClaim
from dovetail.model.pods import Pod
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def insufficient_capacity(claim: NodeClaim, error: str) -> Notice:
    """The cloud has nothing that the claim allows (EVT-6)."""
    text = f"NodeClaim {claim.name} event: {error}"
    return notice_about(claim, "InsufficientCapacityError", text, "Warning")


def pod_without_capacity(pod: Pod, claim: NodeClaim, error: str) -> Notice:
    """The same, for a pod that still waits for that claim's node (1.15)."""
    text = f"NodeClaim {claim.name} nominated for this pod failed to launch: {error}"
    return notice_about(pod, "InsufficientCapacityError", text, "Warning")


def launch_warning(claim: NodeClaim, reason: str, message: str) -> Notice:
    """What the cloud reports about the launch besides its outcome."""
    return notice_about(claim, reason, message, "Warning")


def consistency_check_failed(claim: NodeClaim, issue: str) -> Notice:
    """The node is smaller than the instance that was launched (EVT-8)."""
    return notice_about(claim, "FailedConsistencyCheck", issue, "Warning", distinct=issue)


def reboot_observed(claim: NodeClaim) -> Notice:
    """Its instance has rebooted (1.15)."""
    return notice_about(claim, "RebootObserved", "New boot observed (bootID changed); awaiting node readiness")


def reboot_failed(claim: NodeClaim, why: str) -> Notice:
    """Its instance did not come back, so it is replaced (1.15)."""
    return notice_about(claim, "RebootFailed", f"The node is replaced: {why}", "Warning")


def claim_deadline(claim: NodeClaim, timestamp: str) -> Notice:
    """Until when its pods may stay (EVT-5)."""
    return notice_about(claim, "TerminationGracePeriodExpiring", f"All pods will be deleted by {timestamp}", "Warning")


def unreadable_deadline(claim: NodeClaim, text: str) -> Notice:
    """The deadline annotation cannot be read; upstream would not continue until it is corrected (TRM-6)."""
    message = f"Annotation karpenter.sh/nodeclaim-termination-timestamp is no RFC 3339 time: {text!r}; ignored"
    return notice_about(claim, "InvalidTerminationTimestamp", message, "Warning")
