"""Publishes what was done about the cloud's warnings, on each claim and its node."""

from collections.abc import Iterator, Mapping

from temporalio import activity

from dovetail.messages.interruptions import Answered
from dovetail.model.objects.watched_kinds import NODES
from dovetail.notices.interruptions import About, terminating, warned
from dovetail.notices.notice import Notice
from dovetail.ports.objects import Notices
from dovetail.ports.view import ClusterView

READS = NODES


class InterruptionNotices:
    def __init__(self, notices: Notices, view: ClusterView) -> None:
        self.notices, self.view = notices, view

    @activity.defn
    async def tell_interruptions(self, answered: tuple[Answered, ...]) -> None:
        uids = {node.name: node.uid for node in self.view.snapshot(READS).nodes.values()}
        notices = [notice for each in answered for notice in _notices_of(each, uids)]
        await self.notices.publish(*[notice for notice in notices if notice is not None])


def _notices_of(answered: Answered, uids: Mapping[str, str]) -> Iterator[Notice | None]:
    reason = answered.interruption.reason
    for claim, node in zip(answered.claims, answered.nodes, strict=True):
        subjects = [About(kind="NodeClaim", name=claim.name, uid=claim.uid)]
        if node in uids:
            subjects.append(About(kind="Node", name=node, uid=uids[node]))
        yield from [warned(reason, subject) for subject in subjects]
        if claim.name in answered.deleted:
            yield from [terminating(subject) for subject in subjects]
