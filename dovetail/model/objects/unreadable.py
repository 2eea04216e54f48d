"""An object that cannot be read, with what is known about it nevertheless."""

from dataclasses import dataclass

from dovetail.model.objects.pod_rules import awaits_eviction
from dovetail.model.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An object that could not be parsed: reported, and left out of every decision."""

    kind: str
    name: str
    field: str
    message: str
    node: str = ""  # the node of a pod or an attachment, if that much could be read
    uid: str = ""
    pod: Pod | None = None  # of a pod: phase, deletion and owners, if that much could be read

    @property
    def says(self) -> str:
        """The fault in words, for people."""
        return f"{self.kind} {self.name} cannot be read: {self.field}: {self.message}"

    def holds_its_node(self, now: float) -> bool:
        """Whether its node must be left alone: not if the pod has ended, is stuck in its deletion or belongs to the
        node itself."""
        return self.pod is None or awaits_eviction(self.pod, now)
