"""A cancel request as written on a NodeClaim, and the words about it."""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dovetail.activities.shared.writes.revisions import revise_claim
from dovetail.answers.failures import CommandFailed
from dovetail.answers.wording import duration_text
from dovetail.cli.orders.author import person
from dovetail.cli.output import say
from dovetail.disruption.nodes.resting import read_rest
from dovetail.model import names
from dovetail.model.nodes import NodeClaim
from dovetail.model.values.time import format_time
from dovetail.ports.objects import MetadataChange

if TYPE_CHECKING:
    from dovetail.wiring.orders import ClusterObjects

LOOK_SECONDS: Final = 0.2
ANSWER_SECONDS: Final = 5.0  # for a worker's answer on the claim


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    node: str
    reason: str
    wait: bool


def too_late(order: CancelOrder, claim: NodeClaim) -> CommandFailed:
    """The claim is being deleted, and nothing can call that off."""
    since = claim.deleting_since or time.time()
    ago = duration_text(max(0, round(time.time() - since)))
    when = f"was deleted at {format_time(since)}, {ago} ago"
    return CommandFailed(f"{order.node}: too late: its NodeClaim {claim.name} {when}; {_how_far(claim.name)}")


def rebooted(order: CancelOrder) -> CommandFailed:
    """The cloud may have been asked, and no reboot can be taken back."""
    return CommandFailed(f"{order.node}: too late: its instance is being rebooted, as `dovetail status` shows")


def _how_far(name: str) -> str:
    return f"`dovetail history {name}` says how far it is"


async def annotate(objects: "ClusterObjects", order: CancelOrder, claim: NodeClaim) -> None:
    change = MetadataChange(annotations={names.CANCEL: order.reason, names.CANCEL_BY: person() or None})
    if await revise_claim(objects.claims, claim, lambda _: change) is None:
        raise CommandFailed(f"{order.node}: NodeClaim {claim.name} is gone")


async def say_answer(objects: "ClusterObjects", order: CancelOrder, claim: NodeClaim, words: str) -> None:
    """Wait until the Caretaker answers by removing the annotation, and say `words`: without a limit if the order says
    so, else for as long as an answer takes. CommandFailed if the claim is being deleted, or its instance rebooted."""
    try:
        async with asyncio.timeout(None if order.wait else ANSWER_SECONDS):
            while True:
                now = await objects.claims.read(claim.name)
                if now is None or now.uid != claim.uid or now.deleting_since is not None:
                    raise CommandFailed(f"{order.node}: not cancelled: it is being deleted; {_how_far(claim.name)}")
                if now.is_reboot_ordered:
                    raise rebooted(order)
                if names.CANCEL not in now.annotations:
                    break
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        say(f"{order.node}: recorded on NodeClaim {claim.name}, acts when a worker runs")
        return
    until = format_time(read_rest(now).until)
    say(f"{order.node}: {words}; the node rests until {until}")


async def claim_of(objects: "ClusterObjects", node: str) -> NodeClaim | None:
    """The claim of a node, found by either name; None if the node names no claim as its owner."""
    claim = await objects.claims.read(node)
    if claim is not None:
        return claim
    found = await objects.nodes.read(node)
    if found is None:
        raise CommandFailed(f"{node}: there is no such Node or NodeClaim")
    owner = next((each.name for each in found.owners if each.kind == "NodeClaim"), "")
    return await objects.claims.read(owner) if owner else None
