"""The answers to a person who calls a disruption off by annotating its NodeClaim."""

from dovetail.model.nodes import NodeClaim
from dovetail.model.values.time import format_time
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def cancelled(claim: NodeClaim, words: str, rests_until: float) -> Notice:
    """Nothing disrupts it any more."""
    message = f"Its disruption is called off: {words}. It rests until {format_time(rests_until)}"
    return notice_about(claim, "DisruptionCancelled", message, distinct=message)


def cancel_too_late(claim: NodeClaim, words: str) -> Notice:
    """It is being deleted, and no deletion can be taken back; nor can a reboot."""
    what = "Its instance is being rebooted" if claim.deleting_since is None else "It is being deleted"
    message = f"{what} already: {words}"
    return notice_about(claim, "DisruptionCancelTooLate", message, "Warning", distinct=message)
