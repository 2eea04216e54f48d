"""What do a NodePool's template and a NodeClaim have in common: taints and the reference to a NodeClass (API-11,
API-12)?

Only shapes. That a pool may not change the group or kind of its class, and a claim nothing at all, is said where the
pool and the claim are described.
"""

from typing import Annotated, Literal

from pydantic import Field

from dovetail.api.schema.field_types import Moment, QualifiedName
from dovetail.api.schema.rules import Obeys, Rule
from dovetail.api.schema.structural import ApiModel


class Taint(ApiModel):
    """A taint of the node; pods that do not tolerate it stay away or leave."""

    key: Annotated[QualifiedName, Field(min_length=1)]
    """The taint's key."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to a pod that does not tolerate the taint."""
    value: QualifiedName | None = None
    """The taint's value."""
    time_added: Moment | None = None
    """When the taint was added; written for NoExecute only."""


Taints = Annotated[tuple[Taint, ...], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]


def _not_empty(field: str) -> Obeys:
    return Obeys(Rule(message=f"{field} may not be empty", cel="self != ''", holds=lambda text: text != ""))


class NodeClassReference(ApiModel):
    """Which NodeClass describes the machines in the cloud's terms."""

    group: Annotated[str, Field(pattern=r"^[^/]*$"), _not_empty("group")]
    """API group of the NodeClass, without a version."""
    kind: Annotated[str, _not_empty("kind")]
    """Kind of the NodeClass."""
    name: Annotated[str, _not_empty("name")]
    """Name of the NodeClass."""
