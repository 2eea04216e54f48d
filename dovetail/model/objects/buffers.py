"""A CapacityBuffer: room that a person wants kept free, counted in pods that do not exist (PLC-211).

Its size and its pods are worked out again for every snapshot, so that nothing has to be remembered.
"""

from dataclasses import dataclass, field

from dovetail.model.nodes import Condition
from dovetail.model.values.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """The workload that a buffer follows, in its own namespace."""

    group: str = ""
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatus:
    """What a buffer's status says; None for what it leaves out."""

    template: str | None = None
    template_generation: int | None = None
    replicas: int | None = None
    strategy: str | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBuffer:
    """One buffer. `replicas` and `percentage` ask for room; `limits` bounds them, or is used alone."""

    name: str
    namespace: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deleting: bool = False
    strategy: str = ""
    template: str = ""  # a PodTemplate's name
    workload: WorkloadRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Resources = field(default_factory=dict)
    fault: str = ""  # why its spec cannot be used, if it cannot
    status: BufferStatus = field(default_factory=BufferStatus)

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"
