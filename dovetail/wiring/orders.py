"""The objects on which a person's orders are kept. No cloud and no watch: kubectl needs no more either.

It loads no client of a cluster, of a cloud or of Temporal: a person who types `pause` waits for one request.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from dovetail.adapters.kube.failures import Answer, body_of
from dovetail.adapters.kube.objects.claims import KubeNodeClaims
from dovetail.adapters.kube.objects.namespaces import KubeNamespaces
from dovetail.adapters.kube.objects.nodes import KubeNodes
from dovetail.adapters.kube.objects.pools import KubeNodePools
from dovetail.adapters.kube.raw import user_of
from dovetail.adapters.kube.requests import Request
from dovetail.ports.objects import Namespaces, NodeClaims, NodePools, Nodes, TimeObjects

# Method, path with its query, body, type of content: status and text of the answer.
Send = Callable[[str, str, bytes | None, str], tuple[int, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObjects:
    claims: NodeClaims
    nodes: Nodes
    pools: NodePools
    namespaces: Namespaces
    times: Callable[[], TimeObjects]  # opened where one is read: that loads the schemas of its kinds
    user: Callable[[], Awaitable[str]]  # as whom the API server knows us; empty where it does not say


@dataclass(frozen=True, slots=True)
class _Sent:
    """Requests over a connection that a command has anyway."""

    send: Send

    async def call(self, request: Request) -> Answer:
        path = request.path + (f"?{urlencode(request.query)}" if request.query else "")
        body = None if request.body is None else json.dumps(request.body).encode()
        status, text = self.send(request.method, path, body, request.content_type)
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = None
        return request.checked(Answer(status=status, body=body_of(decoded, text)))


def objects_over(send: Send) -> ClusterObjects:
    """The objects of the API server that the connection leads to."""
    client = _Sent(send)
    return ClusterObjects(
        claims=KubeNodeClaims(client),
        nodes=KubeNodes(client, None),
        pools=KubeNodePools(client),
        namespaces=KubeNamespaces(client),
        times=partial(_times, client),
        user=partial(user_of, client),
    )


def _times(client: _Sent) -> TimeObjects:
    from dovetail.adapters.kube.objects.time_objects import KubeTimeObjects

    return KubeTimeObjects(client, lambda _: False)
