"""Takes up at once what a killed predecessor on this host was waiting in.

Idle waits beat rarely, so that rest costs little, and a killed worker's would be taken up after a minute. But a process
that starts in the place of a killed one knows that it is gone: its container has the same host name, and no process of
that number runs there, or it is this one. Then the singletons that wait in it are told to look again.
"""

import logging
import os
import socket

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client
from temporalio.service import RPCError

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED

_log = logging.getLogger(__name__)


def is_gone(identity: str) -> bool:
    """Whether a worker of that identity (process@host, as the SDK names it) can be no more."""
    number, _, host = identity.partition("@")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    if int(number) == os.getpid():
        return True  # the same number in the same place: a container that started again
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def take_over(client: Client, singletons: list[str]) -> list[str]:
    """Poke those that wait in a process that is gone; which they are."""
    poked = []
    for identity in singletons:
        handle = client.get_workflow_handle(identity)
        try:
            described = await handle.describe()
            pending = described.raw_description.pending_activities
            if any(is_gone(step.last_worker_identity) for step in pending if step.state == STARTED):
                await handle.signal("poke")
                _log.info("the worker that %s waited in is gone: its waits are taken up", identity)
                poked.append(identity)
        except RPCError as error:
            _log.debug("%s was not looked at: %s", identity, error)
    return poked
