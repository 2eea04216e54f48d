"""EC2NodeClass objects, written.

Only annotations, the finalizer and status are ours, each a merge patch at the version that was read.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from dovetail.adapters.aws.node_class.node_class import NodeClass
from dovetail.adapters.kube.client import Client, Request, object_path
from dovetail.adapters.kubernetes_json.kinds import EC2_NODE_CLASS
from dovetail.ports.failures import Conflict

Json = dict[str, Any]

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class ClassObjects(Protocol):
    """Where classes are written."""

    async def patch(self, node_class: NodeClass, body: Json, subresource: str = "") -> Json | None:
        """A merge patch at that version; None where the class is gone, Conflict where it has changed."""


@dataclass(frozen=True, slots=True)
class KubeClassObjects:
    """On the API server."""

    client: Client

    async def patch(self, node_class: NodeClass, body: Json, subresource: str = "") -> Json | None:
        meta = {**body.get("metadata", {}), "resourceVersion": node_class.resource_version}
        request = Request(
            method="PATCH",
            path=object_path(EC2_NODE_CLASS.path, node_class.name, subresource),
            subject=f"EC2NodeClass/{node_class.name}",
            body={**body, "metadata": meta},
            expected=frozenset({_NOT_FOUND, _CONFLICT}),
        )
        answer = await self.client.call(request)
        if answer.status == _NOT_FOUND:
            return None
        if answer.status == _CONFLICT:
            raise Conflict(request.subject, answer.message)
        return answer.body
