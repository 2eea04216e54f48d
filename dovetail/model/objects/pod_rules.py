"""What kind of pod it is: whether it runs, may be evicted, must find another place (DIS-38 to DIS-42).

PodDisruptionBudgets play no part here. An owner counts if apiVersion and kind are exactly the expected ones, and any
owner reference counts, not only the controller's.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.model import names
from dovetail.model.own.pod_windows import opens_at, why_outside
from dovetail.model.pods import Pod, Toleration
from dovetail.model.values.durations import DurationError, parse_nanoseconds
from dovetail.model.values.quoting import quoted

STUCK_AFTER: Final = 60.0  # seconds after its deletion time from which a pod no longer delays a drain (TRM-13)


def is_terminal(pod: Pod) -> bool:
    """Whether it has ended."""
    return pod.phase in ("Succeeded", "Failed")


def is_terminating(pod: Pod) -> bool:
    """Whether it has been deleted; it may still run."""
    return pod.deleting_since is not None


def is_active(pod: Pod) -> bool:
    """Whether it has neither ended nor been deleted (DIS-38)."""
    return pod.deleting_since is None and pod.phase not in ("Succeeded", "Failed")


def is_stuck(pod: Pod, now: float) -> bool:
    """Whether it was deleted, and the end of its grace period is more than a minute ago."""
    return pod.deleting_since is not None and now - pod.deleting_since > STUCK_AFTER


def _owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    return any(owner.kind == kind and owner.api_version == api_version for owner in pod.owners)


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet owns it."""
    return _owned_by(pod, "apps/v1", "DaemonSet")


def is_mirror(pod: Pod) -> bool:
    """Whether it mirrors a static pod: the node itself owns it."""
    return _owned_by(pod, "v1", "Node")


def is_reschedulable(pod: Pod) -> bool:
    """Whether it, or its successor, will need another place when its node leaves (DIS-39)."""
    # Written as one loop, because it is evaluated for every pod in every decision.
    active = pod.deleting_since is None and pod.phase not in ("Succeeded", "Failed")
    if not active and pod.deleting_since is None:
        return False
    of_stateful_set = False
    for owner in pod.owners:
        if owner.api_version == "apps/v1":
            if owner.kind == "DaemonSet":
                return False
            of_stateful_set = of_stateful_set or owner.kind == "StatefulSet"
        elif owner.api_version == "v1" and owner.kind == "Node":
            return False
    return active or of_stateful_set


def is_given_up(pod: Pod) -> bool:
    """Whether the kube-scheduler has found no place for it on its last try."""
    if not pod.unschedulable or pod.node_name:
        return False
    return not pod.owners or not (is_daemon(pod) or is_mirror(pod))


def _tolerates_disrupted(toleration: Toleration) -> bool:
    if toleration.effect not in ("", "NoSchedule") or toleration.key not in ("", names.DISRUPTED_TAINT):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == ""
    return toleration.operator == "Exists"


def tolerates_disrupted(pod: Pod) -> bool:
    """Whether the pod stays where the taint karpenter.sh/disrupted:NoSchedule is; Equal without a key does (DIS-40)."""
    return any(_tolerates_disrupted(t) for t in pod.shape.tolerations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What a pod's annotations mean now. `until`: when a timed one ends. `fault`: why do-not-disrupt is ignored; `by`:
    the annotation that holds, and `why` if that is not do-not-disrupt."""

    active: bool
    until: float | None = None
    fault: str = ""
    by: str = names.DO_NOT_DISRUPT
    why: str = ""

    @property
    def says(self) -> str:
        """Why the pod stays, after its name."""
        return f"carries {self.by}" + (f": {self.why}" if self.why else "")


UNPROTECTED: Final = Protection(active=False)
PROTECTED: Final = Protection(active=True)


def protection(pod: Pod, now: float) -> Protection:
    """Whether the pod stays: because of do-not-disrupt, or because it is outside windows of its own."""
    own = do_not_disrupt_of(pod, now)
    if pod.disruption_window is None or (own.active and own.until is None):
        return own
    why = why_outside(pod.disruption_window, now)
    if not why:
        return own
    opens = opens_at(pod.disruption_window, now)
    until = max(opens, own.until or opens) if opens is not None and own.active else opens
    return Protection(active=True, until=until, by=names.DISRUPTION_WINDOW, why=why)


def do_not_disrupt_of(pod: Pod, now: float) -> Protection:
    """What that annotation means: `true`, or a duration measured from the pod's start (DIS-41)."""
    text = pod.do_not_disrupt
    if text is None:
        return UNPROTECTED
    if text == "true":
        return PROTECTED
    try:
        nanoseconds = parse_nanoseconds(text)
    except DurationError as error:
        return Protection(active=False, fault=f"failed to parse {quoted(text)} as a duration: {error}")
    if nanoseconds <= 0:
        return Protection(active=False, fault=f"duration {quoted(text)} must be positive")
    if pod.started is None:
        return PROTECTED
    until = pod.started + nanoseconds / 10**9
    return Protection(active=now < until, until=until)


def is_protected(pod: Pod, now: float) -> bool:
    """Whether its annotations protect it now; a pod that has ended or was deleted is not protected."""
    return pod.asks_to_stay and is_active(pod) and protection(pod, now).active


def is_evictable(pod: Pod, now: float) -> bool:
    """Whether a drain evicts it (DIS-40)."""
    return (
        is_active(pod)
        and not is_mirror(pod)
        and not tolerates_disrupted(pod)
        and not (pod.asks_to_stay and protection(pod, now).active)
    )


def is_drainable(pod: Pod, now: float) -> bool:
    """Whether it can delay a drain (TRM-13)."""
    return not (tolerates_disrupted(pod) or is_stuck(pod, now) or is_mirror(pod))


def awaits_eviction(pod: Pod, now: float) -> bool:
    """Whether it does delay a drain."""
    return not is_terminal(pod) and is_drainable(pod, now)
