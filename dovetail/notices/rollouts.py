"""Notices about approvals of NodeRollouts."""

from typing import Literal

from dovetail.model.own.rollout_approvals import Answered
from dovetail.model.own.rollouts import Rollout
from dovetail.notices.notice import Notice


def answered(rollout: Rollout, answer: Answered) -> Notice:
    given = answer.approval
    if answer.refused:
        message = f"The approval by {given.by} lets nothing begin: {answer.refused}"
        return _notice(rollout, "ApprovalRefused", message, "Warning")
    return _notice(rollout, "ApprovalAccepted", f"What comes after step {given.step} begins, by {given.by}")


def _notice(rollout: Rollout, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal") -> Notice:
    of = rollout.status.answered
    return Notice(
        kind="NodeRollout",
        name=rollout.name,
        uid=rollout.uid,
        type=type,
        reason=reason,
        message=message,
        distinct=f"{message}{of.approval.at if of is not None else ''}",
    )
