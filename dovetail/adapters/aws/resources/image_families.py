"""How image families differ: in their disks, in what their kubelet accepts, in what their nodes can hold.

One row per family; user data, the largest difference, is in user_data/.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.model.values.json import Json


def _disk(device: str, size: str) -> Json:
    return {"deviceName": device, "ebs": {"encrypted": True, "volumeType": "gp3", "volumeSize": size}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    name: str
    windows_build: str = ""  # set: a Windows family
    eni_density: bool = True  # pods are limited by network interfaces (AWS-56)
    pods_per_core: bool = True
    ephemeral_device: str = ""  # the mapping whose size is the pods' storage (AWS-58)
    default_storage: str = "20Gi"
    disks: tuple[Json, ...] = ()  # where the class names none (AWS-100)
    reserved_by_interfaces: bool = True  # kube-reserved counts ENI-limited pods, whatever maxPods says (AWS-60)


FAMILIES: Final = {
    family.name: family
    for family in (
        Family(name="AL2", ephemeral_device="/dev/xvda", disks=(_disk("/dev/xvda", "20Gi"),)),
        Family(name="AL2023", ephemeral_device="/dev/xvda", disks=(_disk("/dev/xvda", "20Gi"),)),
        Family(
            name="Bottlerocket",
            pods_per_core=False,
            ephemeral_device="/dev/xvdb",
            disks=(_disk("/dev/xvda", "6Gi"), _disk("/dev/xvdb", "20Gi")),  # no less than its snapshot (decision 232)
            reserved_by_interfaces=False,
        ),
        Family(name="Custom"),
        *(
            Family(
                name=f"Windows{year}",
                windows_build=build,
                eni_density=False,
                ephemeral_device="/dev/sda1",
                default_storage="50Gi",
                disks=(_disk("/dev/sda1", "50Gi"),),
                reserved_by_interfaces=False,
            )
            for year, build in (("2019", "10.0.17763"), ("2022", "10.0.20348"), ("2025", "10.0.26100"))
        ),
    )
}
