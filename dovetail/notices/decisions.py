"""The notices about a decision, in upstream's words.

They are made from the reasons that the checks return, never inside a check: a check that published could not be
repeated. The object's UID is not always known here, and is added before publishing.
"""

from typing import Final, Literal

from dovetail.model.objects.pod_rules import do_not_disrupt_of
from dovetail.model.own.pod_windows import window_fault, window_words
from dovetail.model.places.placements import EmptyPool
from dovetail.model.pods import Pod
from dovetail.model.values.time import format_time
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice

# How long the same words about the same object are not repeated, for notices with a window of upstream's own.
WINDOWS: Final = {"Unconsolidatable": 900.0, "NoCompatibleInstanceTypes": 60.0}
POOL_WINDOW: Final = 60.0
DEFAULT_WINDOW: Final = 120.0


def decision_notice(
    kind: str, name: str, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal"
) -> Notice:
    """A notice about a node, claim or pool. Two with different messages are both published."""
    window = POOL_WINDOW if kind == "NodePool" else WINDOWS.get(reason, DEFAULT_WINDOW)
    return Notice(kind=kind, name=name, reason=reason, message=message, type=type, distinct=message, window=window)


def pod_notice(pod: Pod, now: float) -> Notice | None:
    """What a pod's annotations mean; None if there is nothing to report (DIS-42)."""
    if fault := window_fault(pod):
        return notice_about(pod, "InvalidDisruptionWindow", window_words(fault), "Warning", distinct=fault)
    if pod.do_not_disrupt is None or pod.do_not_disrupt == "true":
        return None
    held = do_not_disrupt_of(pod, now)
    if held.fault:
        message = f"Invalid karpenter.sh/do-not-disrupt annotation: {held.fault}, ignoring annotation"
        return notice_about(pod, "InvalidDoNotDisruptAnnotation", message, "Warning", distinct=message)
    if held.until is None:
        return None
    if held.active:
        message = f"The karpenter.sh/do-not-disrupt grace period will elapse at {format_time(held.until)}"
        return notice_about(pod, "DoNotDisruptUntil", message, distinct=message)
    message = "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable"
    return notice_about(pod, "DoNotDisruptGracePeriodElapsed", message, distinct=message)


def no_compatible_types(empty: EmptyPool) -> Notice:
    """The pool has no instance type to offer (PLC-227)."""
    message = "NodePool requirements filtered out all compatible available instance types"
    if empty.because_of_min_values:
        message += " due to minValues incompatibility"
    message += f"; {empty.closed}" if empty.closed else ""
    return decision_notice("NodePool", empty.pool, "NoCompatibleInstanceTypes", message, "Warning")
