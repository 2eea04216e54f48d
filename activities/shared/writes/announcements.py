"""Writes on a Node how far its leaving has come, for people and other controllers; no code of ours reads it.

So no step waits for it longer than a moment or fails because of it: an error is only logged.
"""

import asyncio
import logging
from typing import Final

from dovetail.model.nodes import Condition, Node
from dovetail.ports.failures import Failure
from dovetail.ports.objects import Nodes

LONGEST: Final = 2.0  # seconds; an API server that takes longer has pods to evict

_log = logging.getLogger(__name__)


async def announce(nodes: Nodes, node: Node, conditions: tuple[Condition, ...]) -> None:
    """One request; none where the node says all of it already."""
    if not conditions:
        return
    try:
        async with asyncio.timeout(LONGEST):
            await nodes.set_conditions(node, conditions)
    except (Failure, TimeoutError) as error:
        said = ", ".join(f"{each.type}={each.status}" for each in conditions)
        _log.warning("Node %s does not say %s: %s", node.name, said, error or f"no answer within {LONGEST:.0f} s")
