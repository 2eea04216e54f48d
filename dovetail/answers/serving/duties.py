"""What a worker does besides, where a setting asks for it: it keeps the record beyond Temporal's retention.

All workers do it. Each looks at its own moment of ten minutes, finds what is missing, and mostly finds nothing.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Final
from zlib import crc32

from dovetail.background.supervised import Work
from dovetail.connection.identity import own_identity
from dovetail.connection.presence import TemporalPresence
from dovetail.settings.settings import Settings

LOOK_SECONDS: Final = 600.0
FIRST_SECONDS: Final = 60.0  # a worker that starts has other things to do

_log = logging.getLogger(__name__)


def duties(settings: Settings, presence: TemporalPresence) -> Mapping[str, Work]:
    """By their names."""
    if not settings.record or "control" not in settings.roles:
        return {}
    return {"the kept record": partial(keep_record, settings, presence)}


def first_look(identity: str) -> float:
    """When a worker looks for the first time after its start: each at a moment of its own."""
    return FIRST_SECONDS + crc32(identity.encode()) % int(LOOK_SECONDS)


async def keep_record(settings: Settings, presence: TemporalPresence) -> None:
    """Copy each hour once it is over, for ever."""
    from dovetail.answers.record.kept import Archive, keep_up
    from dovetail.wiring.world import open_kept_objects

    objects = open_kept_objects(settings, settings.record)
    assert objects is not None
    await asyncio.sleep(first_look(own_identity(settings.pod)))
    try:
        while True:
            if presence.client is not None and not presence.is_away:
                count = await keep_up(presence.client, Archive(objects, settings.cluster), time.time())
                if count:
                    _log.info("the record of %d hours is kept in %s", count, settings.record)
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        await objects.close()
