"""Which attached volumes hold a node whose pods have left?

Volumes of pods that stay (tolerating, static, stuck) are not waited for: they will not be detached. The
attach-detach controller detaches volumes; this product never does (TRM-32).
"""

from collections.abc import Iterable

from dovetail.model.objects.pod_rules import is_drainable
from dovetail.model.objects.workloads import Volume, VolumeAttachment, VolumeClaim
from dovetail.model.pods import Pod, claim_key


def volume_claim_keys(pods: tuple[Pod, ...], now: float) -> tuple[str, ...]:
    """namespace/name of the volume claims of the pods that stay."""
    staying = (pod for pod in pods if not is_drainable(pod, now))
    keys = {claim_key(pod, volume) for pod in staying for volume in pod.shape.volumes}
    return tuple(sorted(keys))


def holding(
    attachments: tuple[VolumeAttachment, ...], staying: Iterable[tuple[VolumeClaim, Volume | None]]
) -> tuple[VolumeAttachment, ...]:
    """The attachments to wait for. `staying`: the claims of pods that stay, with the volume that each names. Anybody
    may name any volume in a claim: only the volume says whose it is."""
    ignored = {volume.name for claim, volume in staying if volume and claim.uid and volume.claim_uid == claim.uid}
    held = (a for a in attachments if a.volume_name and a.volume_name not in ignored)
    return tuple(sorted(held, key=lambda attachment: attachment.name))
