"""`dovetail cancel NODE --reason …`: call a disruption off before its claim is deleted.

The NodeClaim is annotated, as a person with kubectl would do it: this takes effect at once, and needs only a
kubeconfig. One claim, one node and one namespace are read, whatever the size of the cluster. A worker answers by taking
the annotation off; if none does within five seconds it stays, and acts when a worker is back.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.wording import duration_text
from dovetail.cli.orders.cancelling import CancelOrder, annotate, claim_of, rebooted, say_answer, too_late
from dovetail.cli.orders.target import checked_target
from dovetail.cli.orders.written_on import opened_objects
from dovetail.cli.output import say
from dovetail.cli.remote.asking import where_of
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.time import format_time, optional_time

if TYPE_CHECKING:
    from dovetail.settings.settings import Settings
    from dovetail.wiring.orders import ClusterObjects

HISTORY_SECONDS: Final = 5.0  # for a worker that says what happened to a node


async def cancel(given: argparse.Namespace, settings: "Settings | None") -> None:
    """Cancel the disruption of that node or NodeClaim."""
    order = CancelOrder(node=given.node, reason=given.reason, wait=given.wait)
    async with opened_objects(given, settings) as objects:
        target = await checked_target(settings, objects, given)
        await _by_annotation(objects, order, await _claim_or_its_end(given, objects))
        say(target.words)


async def _claim_or_its_end(given: argparse.Namespace, objects: "ClusterObjects") -> NodeClaim | None:
    """The claim of the node; CommandFailed with the time at which it left, if a worker knows that."""
    try:
        return await claim_of(objects, given.node)
    except CommandFailed as error:
        ended = await asyncio.to_thread(_ended, given)
        raise CommandFailed(f"{error}{ended}") from None


def _ended(given: argparse.Namespace) -> str:
    """When it left, by the record; empty if there is no record of it, or no worker answers."""
    from urllib.parse import quote

    from dovetail.cli.remote.workers import Workers

    try:
        workers = Workers(where_of(given), HISTORY_SECONDS)
        try:
            stories: list[Mapping[str, Any]] = workers.document(f"history/{quote(given.node)}")["stories"]
        finally:
            workers.close()
    except CommandFailed:
        return ""
    moments = [at for at in (optional_time(each.get("ended")) for each in stories) if at is not None]
    if not moments:
        return ""
    ago = duration_text(round(time.time() - max(moments)))
    return f": it went at {format_time(max(moments))}, {ago} ago; `dovetail history {given.node}` has it"


async def _by_annotation(objects: "ClusterObjects", order: CancelOrder, claim: NodeClaim | None) -> None:
    """Write the request on the claim, and wait for the answer."""
    if claim is None:
        raise CommandFailed(f"{order.node}: it belongs to no NodeClaim, and is not ours to disrupt")
    if claim.deleting_since is not None:
        raise too_late(order, claim)
    if claim.is_reboot_ordered:
        raise rebooted(order)
    marked = bool(claim.annotations.get(names.OWNER)) or claim.is_rebooting
    await annotate(objects, order, claim)
    words = "its disruption is called off and undone" if marked else "nothing takes it now"
    await say_answer(objects, order, claim, words)
