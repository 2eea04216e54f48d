"""What else a label is called (PLC-33, API-22, AWS-4).

One table for all clouds: a worker, a simulated world and a replayed decision must read the same objects in the same way
(decision record 64).
"""

from typing import Final

from dovetail.model.names import ARCH, INSTANCE_TYPE, OS, REGION, ZONE

KEY_ALIASES: Final[dict[str, str]] = {
    # Kubernetes' old spellings; kubelets and clouds still set them beside the new ones.
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    # What volume drivers call the zone: in a PersistentVolume it stays for the life of the volume.
    "topology.ebs.csi.aws.com/zone": ZONE,
}


def canonical_key(key: str) -> str:
    """The key under which the label is known here."""
    return KEY_ALIASES.get(key, key)
