"""Deployments: read live, and two annotations changed.

The right to change them would let its holder run any image, so an admission policy refuses us everything else, and no
move is begun before that is proven (`guards.py`).
"""

import time
from collections.abc import Callable

from dovetail.adapters.kube.guards import MOVES, Guard
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller
from dovetail.adapters.kubernetes_json.kinds import MOVE_KINDS
from dovetail.adapters.kubernetes_json.rendering.deployments import render_move
from dovetail.model.objects.workloads import Deployment
from dovetail.model.places.move_changes import MoveChange


class KubeDeployments:
    def __init__(self, client: Caller, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self.guard = client, Guard(client, MOVES, clock)

    async def read(self, deployment: Deployment) -> Deployment | None:
        found = await self._in(deployment.namespace).read(deployment.name)
        return found if found is not None and found.uid == deployment.uid else None

    async def annotate(self, deployment: Deployment, change: MoveChange) -> Deployment | None:
        """What has begun is ended whatever the policy does: a move that nobody ends holds its node."""
        if change.move.begun is not None and not await self.guard.insist(deployment.namespace, deployment.name):
            return None
        return await self._in(deployment.namespace).patch(deployment, render_move(change))

    def _in(self, namespace: str) -> Collection[Deployment]:
        kind = MOVE_KINDS[0]
        group, _, plural = kind.path.rpartition("/")
        return Collection(self._client, kind.name, f"{group}/namespaces/{namespace}/{plural}", kind.parse)
