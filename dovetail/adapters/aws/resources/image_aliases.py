"""Under which SSM parameters AWS publishes the images of an alias (AWS-32, AWS-33).

Pure text: alias and Kubernetes version in, paths and the purpose of each image out.
"""

from dataclasses import dataclass
from typing import Final

from dovetail.adapters.aws import names
from dovetail.adapters.aws.resources.image_families import FAMILIES
from dovetail.api.aws.ami_selectors import AMI_FAMILIES
from dovetail.model import names as core
from dovetail.model.pods import Expression

ARCHES: Final = {"x86_64": "amd64", "arm64": "arm64"}

_EKS: Final = "/aws/service/eks/optimized-ami"
_LATEST: Final = "latest"
_STANDARD: Final = (
    Expression(key=names.ACCELERATOR_COUNT, operator="DoesNotExist"),
    Expression(key=names.GPU_COUNT, operator="DoesNotExist"),
)
_NVIDIA: Final = (Expression(key=names.GPU_COUNT, operator="Exists"),)
_NEURON: Final = (Expression(key=names.ACCELERATOR_COUNT, operator="Exists"),)
_VARIANTS: Final = {"standard": _STANDARD, "nvidia": _NVIDIA, "neuron": _NEURON}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A parameter whose value is an image id, and the sets of requirements that this image serves."""

    path: str
    serves: tuple[tuple[Expression, ...], ...]


class UnsupportedAlias(ValueError):
    """AWS publishes no such image for this version of Kubernetes (AWS-34)."""


def published(alias: str, version: str) -> tuple[Published, ...]:
    """The parameters of family@version for a Kubernetes version."""
    name, _, wanted = alias.partition("@")
    family = AMI_FAMILIES[name]
    number = _number(version)
    if family == "AL2" and number >= (1, 33):
        raise UnsupportedAlias("AL2 images are not published for Kubernetes 1.33 and later")
    if family == "Windows2025" and number < (1, 35):
        raise UnsupportedAlias("Windows Server 2025 images are not published for Kubernetes before 1.35")
    match family:
        case "AL2":
            return _al2(version, wanted)
        case "AL2023":
            return _al2023(version, wanted)
        case "Bottlerocket":
            return _bottlerocket(version, wanted)
    return _windows(family, version)


def _number(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major or 0), int(minor.partition(".")[0] or 0)


def _al2(version: str, wanted: str) -> tuple[Published, ...]:
    rows = (
        ("amazon-linux-2", "amazon-eks-node", (_STANDARD,)),
        ("amazon-linux-2-arm64", "amazon-eks-arm64-node", (_STANDARD,)),
        ("amazon-linux-2-gpu", "amazon-eks-gpu-node", (_NVIDIA, _NEURON)),
    )
    return tuple(
        Published(path=f"{_EKS}/{version}/{folder}/{_leaf(image, version, wanted)}/image_id", serves=serves)
        for folder, image, serves in rows
    )


def _leaf(image: str, version: str, wanted: str) -> str:
    return "recommended" if wanted == _LATEST else f"{image}-{version}-{wanted}"


def _al2023(version: str, wanted: str) -> tuple[Published, ...]:
    return tuple(
        Published(
            path=f"{_EKS}/{version}/amazon-linux-2023/{arch}/{variant}/"
            + _leaf(f"amazon-eks-node-al2023-{arch}-{variant}", version, wanted)
            + "/image_id",
            serves=(serves,),
        )
        for arch in ARCHES
        for variant, serves in _VARIANTS.items()
        if (arch, variant) != ("arm64", "neuron")
    )


def _bottlerocket(version: str, wanted: str) -> tuple[Published, ...]:
    release = wanted if wanted == _LATEST else wanted.removeprefix("v")
    rows = (
        ("", "x86_64", (_STANDARD, _NEURON)),
        ("", "arm64", (_STANDARD,)),
        ("-nvidia", "x86_64", (_NVIDIA,)),
        ("-nvidia", "arm64", (_NVIDIA,)),
    )
    return tuple(
        Published(path=f"/aws/service/bottlerocket/aws-k8s-{version}{suffix}/{arch}/{release}/image_id", serves=serves)
        for suffix, arch, serves in rows
    )


def _windows(family: str, version: str) -> tuple[Published, ...]:
    year = family.removeprefix("Windows")
    serves = (
        Expression(key=core.OS, operator="In", values=("windows",)),
        Expression(key=core.WINDOWS_BUILD, operator="In", values=(FAMILIES[family].windows_build,)),
    )
    path = f"/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{version}/image_id"
    return (Published(path=path, serves=(serves,)),)
