"""What a person at a terminal may ask of a cluster, beyond what decisions need. Facts only, no judgement."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

RawObjects = Mapping[str, list[dict[str, Any]]]  # Kubernetes JSON by kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """The API server as it looks from here."""

    address: str
    version: str
    clock_ahead: float  # seconds that the API server's clock is ahead of ours
    clock_error: float = 0.0  # how far off that figure may be
    missing_kinds: tuple[str, ...] = ()  # kinds that we watch and that the server does not serve
    missing_memory: str = ""  # the ConfigMap that workers share, where it is not there
    left_behind: tuple[str, ...] = ()  # of Karpenter before v1, as "Kind name": the first of each kind
    missing_rights: tuple[str, ...] = ()  # as "verb resource", what our identity may not do
    unproven: tuple[str, ...] = ()  # policies that must keep us to what we use of a right, and did not refuse the rest


class Inspection(Protocol):
    """A cluster, looked at as a whole."""

    async def facts(self) -> ClusterFacts:
        """What there is and what we may do."""

    async def version(self) -> str:
        """Of the API server."""

    async def servers(self) -> Collection[str]:
        """The addresses from which the API server comes to a pod."""

    async def objects(self) -> RawObjects:
        """Every object that decisions read, as JSON."""

    async def object(self, kind: str, name: str) -> dict[str, Any] | None:
        """One cluster-wide object of those kinds, as JSON; None where there is none."""
