"""Which pod events restart a claim's quiet time (DIS-163 to DIS-165, DIS-182 to DIS-185).

After a restart, what the first list of pods shows is dated by the pods' own times. Stamping every node with the current
time would restart every consolidateAfter timer (DIQ-12).
"""

from collections.abc import Iterable
from typing import Final

from dovetail.model.nodes import NodeClaim
from dovetail.model.objects.pod_rules import is_daemon
from dovetail.model.pods import Pod

STAMP_EVERY: Final = 10.0  # seconds; less than the 15 s of validation, so that no movement stays unseen (DIS-142)
UNASKED_AFTER: Final = 300.0  # seconds after a movement, if the pool asks for no quiet and so nobody reads the stamp


def is_stamp_due(claim: NodeClaim, moment: float) -> bool:
    """Whether a pod that came or left at that moment is stamped on the claim: not soon after another one (DIS-163)."""
    return claim.last_pod_event is None or moment - claim.last_pod_event >= STAMP_EVERY


def stamp_from_list(claim: NodeClaim, pods: Iterable[Pod]) -> float | None:
    """The stamp after a restart: the newest start among the node's pods; None if the claim's stamp suffices."""
    moments = [pod.started or pod.created for pod in pods if not is_daemon(pod)]
    newest = max(moments, default=None)
    return newest if newest is not None and is_stamp_due(claim, newest) else None
