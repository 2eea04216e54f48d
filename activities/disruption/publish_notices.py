"""Publishes a notice about nodes."""

from typing import Final

from temporalio import activity

from dovetail.messages.requests import NoticeRequest
from dovetail.notices.about import notice_about
from dovetail.ports.failures import Refused
from dovetail.ports.objects import Notices
from dovetail.ports.view import ClusterLookups

REASONS: Final = ("DisruptionCancelTooLate", "UnregisteredTaintMissing")


class PublishNotices:
    def __init__(self, notices: Notices, lookups: ClusterLookups) -> None:
        self.notices = notices
        self.lookups = lookups

    @activity.defn
    async def publish(self, request: NoticeRequest) -> None:
        """One notice for each node that still exists; none but those that workflows have to give."""
        if request.reason not in REASONS:
            raise Refused(f"notice {request.reason[:64]}", f"no workflow gives another than {' or '.join(REASONS)}")
        nodes = [self.lookups.node(name) for name in request.nodes]
        await self.notices.publish(
            *[
                notice_about(node, request.reason, request.message, "Warning" if request.warning else "Normal")
                for node in nodes
                if node is not None
            ]
        )
