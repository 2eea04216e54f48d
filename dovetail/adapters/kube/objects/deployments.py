"""Deployments: read live, and two annotations changed.

The right to change them would let its holder run any image, so an admission policy refuses us everything else. Before a
move is begun, a dry run of another change verifies this: the policy must refuse it. A policy that exists but names
another identity than ours would refuse nothing.
"""

import time
from collections.abc import Callable
from typing import Final

from dovetail.adapters.kube.failures import CONFLICT, NOT_FOUND
from dovetail.adapters.kube.objects.collection import Collection
from dovetail.adapters.kube.requests import Caller, Request, object_path
from dovetail.adapters.kubernetes_json.kinds import MOVE_KINDS
from dovetail.adapters.kubernetes_json.rendering.deployments import render_move
from dovetail.model.objects.workloads import Deployment
from dovetail.model.places.move_changes import GUARD, MoveChange
from dovetail.ports.failures import Refused

TRIED_FOR: Final = 300.0  # seconds for which a refusal that was seen counts
FORBIDDEN: Final = 403
INVALID: Final = 422
FORBIDDEN_CHANGE: Final = {"metadata": {"labels": {"dovetail.sh/may-not": "be-written"}}}


class KubeDeployments:
    def __init__(self, client: Caller, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._refused_at = float("-inf")

    async def read(self, deployment: Deployment) -> Deployment | None:
        found = await self._in(deployment.namespace).read(deployment.name)
        return found if found is not None and found.uid == deployment.uid else None

    async def annotate(self, deployment: Deployment, change: MoveChange) -> Deployment | None:
        if change.begins and self._clock() - self._refused_at >= TRIED_FOR:
            await self._insist_on_the_policy(deployment)
        return await self._in(deployment.namespace).patch(deployment, render_move(change))

    async def _insist_on_the_policy(self, deployment: Deployment) -> None:
        request = Request(
            method="PATCH",
            path=object_path(MOVE_KINDS[0].path, deployment.name, namespace=deployment.namespace),
            subject=f"Deployment/{deployment.key}",
            query={"dryRun": "All"},
            body=FORBIDDEN_CHANGE,
            expected=frozenset({FORBIDDEN, INVALID, NOT_FOUND, CONFLICT}),
        )
        answer = await self._client.call(request)
        if answer.status in (FORBIDDEN, INVALID) and GUARD in answer.message:
            self._refused_at = self._clock()
        elif answer.status != NOT_FOUND:
            why = f"the admission policy {GUARD} does not refuse this worker another change of it: {answer.message}"
            raise Refused(request.subject, why)

    def _in(self, namespace: str) -> Collection[Deployment]:
        kind = MOVE_KINDS[0]
        group, _, plural = kind.path.rpartition("/")
        return Collection(self._client, kind.name, f"{group}/namespaces/{namespace}/{plural}", kind.parse)
