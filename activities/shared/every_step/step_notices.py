"""Publishes on the objects that a step works on that the step fails.

At once if a person has to act, after more than three failures in a row otherwise. A step of a singleton works on no
single object; its notices are on the NodePools, where a person looks first. They are published beside the step, which
must not wait for them.
"""

import asyncio
from collections.abc import Iterable
from functools import singledispatch
from typing import Final

from dovetail.activities.shared.every_step.step_health import MANY_ATTEMPTS, FailingStep
from dovetail.messages.orders import DeleteClaim, FillPool, StartOwner, StartRelease, TakeOffMark
from dovetail.messages.plans import ProposedNode
from dovetail.messages.requests import CreateRequest, DeleteRequest, MarkRequest, UnmarkRequest
from dovetail.messages.subjects import ClaimRef, Departure
from dovetail.model.objects.watched_kinds import POOLS
from dovetail.notices.failing_steps import WorkedOn, step_failing
from dovetail.ports.failures import Failure, Permanent, needs_a_person
from dovetail.ports.objects import Notices
from dovetail.ports.view import ClusterView

MOST_OBJECTS: Final = 10  # a plan may be about hundreds


class StepNotices:
    def __init__(self, notices: Notices, view: ClusterView) -> None:
        self.notices, self.view = notices, view
        self.publishing: set[asyncio.Task[None]] = set()

    def publish_failure(self, failing: FailingStep, argument: object, error: Exception) -> None:
        """Publish, if there is a reason to and it has not been published already."""
        if not (isinstance(error, Permanent) or needs_a_person(error) or failing.times > MANY_ATTEMPTS):
            return
        found = [
            step_failing(each, failing.step, failing.failure, failing.text)
            for each in (worked_on(argument) or self._pools())[:MOST_OBJECTS]
        ]
        task = asyncio.create_task(self.notices.publish(*found))
        self.publishing.add(task)
        task.add_done_callback(self.publishing.discard)

    def _pools(self) -> tuple[WorkedOn, ...]:
        try:
            pools = self.view.snapshot(POOLS).pools
        except Failure:
            return ()  # the view cannot be used, which probes and metrics say
        return tuple(WorkedOn(kind="NodePool", name=pool.name, uid=pool.uid) for _, pool in sorted(pools.items()))


@singledispatch
def worked_on(argument: object) -> tuple[WorkedOn, ...]:
    """The objects that a step with this argument works on; none if it looks over everything."""
    return ()


@worked_on.register
def _(argument: ClaimRef) -> tuple[WorkedOn, ...]:
    return (WorkedOn(kind="NodeClaim", name=argument.name, uid=argument.uid),)


@worked_on.register
def _(argument: Departure) -> tuple[WorkedOn, ...]:
    claims = worked_on(argument.claim) if argument.claim.uid else ()
    uids = dict(zip(argument.nodes, argument.node_uids, strict=False))
    return (*claims, *(WorkedOn(kind="Node", name=name, uid=uids.get(name, "")) for name in argument.nodes))


@worked_on.register(StartOwner)
@worked_on.register(TakeOffMark)
@worked_on.register(DeleteClaim)
def _(argument: StartOwner | TakeOffMark | DeleteClaim) -> tuple[WorkedOn, ...]:
    return worked_on(argument.claim)


@worked_on.register
def _(argument: StartRelease) -> tuple[WorkedOn, ...]:
    return (WorkedOn(kind="Node", name=argument.node, uid=argument.uid),)


@worked_on.register
def _(argument: DeleteRequest) -> tuple[WorkedOn, ...]:
    return (WorkedOn(kind="NodeClaim", name=argument.name, uid=argument.uid),)


@worked_on.register
def _(argument: UnmarkRequest) -> tuple[WorkedOn, ...]:
    return tuple(each for claim in argument.claims for each in worked_on(claim))


@worked_on.register
def _(argument: MarkRequest) -> tuple[WorkedOn, ...]:
    return tuple(WorkedOn(kind="NodeClaim", name=each.claim, uid=each.claim_uid) for each in argument.command.targets)


@worked_on.register
def _(argument: CreateRequest) -> tuple[WorkedOn, ...]:
    return _of_pools(argument.proposed)


@worked_on.register
def _(argument: FillPool) -> tuple[WorkedOn, ...]:
    return _of_pools(argument.request.proposed)


def _of_pools(proposed: Iterable[ProposedNode]) -> tuple[WorkedOn, ...]:
    pools = sorted({(each.pool, each.pool_uid) for each in proposed})
    return tuple(WorkedOn(kind="NodePool", name=name, uid=uid) for name, uid in pools)
