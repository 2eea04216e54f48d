"""The notices on a NodePool that something is paused, that it resumes, and that a pause cannot be understood."""

from dovetail.model.own.pauses import Pause
from dovetail.model.pools import NodePool
from dovetail.notices.about import notice_about
from dovetail.notices.notice import Notice


def paused(pool: NodePool, pause: Pause) -> Notice:
    """Published once for each pause."""
    message = f"{pause.words} paused for {pause.where} {pause.says}"
    return notice_about(pool, "Paused", message, distinct=message)


def resumed(pool: NodePool, pause: Pause) -> Notice:
    """Published when it has ended, by a person or by itself."""
    message = f"{pause.words} no longer paused for {pause.where}"
    return notice_about(pool, "Resumed", message, distinct=message)


def not_understood(pool: NodePool, fault: str) -> Notice:
    """What is wrong with the annotations, and how they are interpreted."""
    return notice_about(pool, "PauseNotUnderstood", fault, "Warning", distinct=fault)
