"""Notices about pods that must leave a node.

Reasons and types are upstream's (EVT-1, EVT-2, EVT-9 to EVT-11). Repetitions are recognised by the pod, not only by its
name as upstream does, which mixes up namespaces.
"""

from typing import Literal

from dovetail.model.objects.pod_rules import do_not_disrupt_of
from dovetail.model.own.pod_windows import window_fault, window_words
from dovetail.model.pods import Pod
from dovetail.model.values.time import format_time
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def evicted(pod: Pod, reason: str) -> Notice:
    """The eviction was accepted (EVT-1)."""
    return _of(pod, "Normal", "Evicted", f"Evicted pod: {reason}")


def deleted_by_force(pod: Pod, grace: int, why: str = "to meet the node's termination time") -> Notice:
    """Its own grace period does not fit before the node's deadline (EVT-2), or the drain is forced."""
    own = "none of its own" if pod.grace_seconds is None else f"{pod.grace_seconds} seconds of its own"
    text = (
        f"Deleted the pod {why}, granted {grace} seconds of grace-period ({own}); "
        "PDBs and do-not-disrupt do not hold it any longer"
    )
    return _of(pod, "Normal", "Disrupted", text)


def protection_notice(pod: Pod, now: float) -> Notice | None:
    """What its annotations mean; None if there is nothing to report (EVT-9 to EVT-11)."""
    if fault := window_fault(pod):
        return _of(pod, "Warning", "InvalidDisruptionWindow", window_words(fault))
    if pod.do_not_disrupt is None or pod.do_not_disrupt == "true":
        return None
    found = do_not_disrupt_of(pod, now)
    if found.fault:
        return _of(pod, "Warning", "InvalidDoNotDisruptAnnotation", f"{found.fault}; the annotation is ignored")
    if found.until is None:
        return None
    if found.active:
        return _of(pod, "Normal", "DoNotDisruptUntil", f"Not to be disrupted until {format_time(found.until)}")
    return _of(pod, "Normal", "DoNotDisruptGracePeriodElapsed", "The time of do-not-disrupt is over")


def _of(pod: Pod, type: Literal["Normal", "Warning"], reason: str, message: str) -> Notice:
    return notice_about(pod, reason, message, type, distinct=pod.uid)
