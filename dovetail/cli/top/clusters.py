"""All clusters of the Temporal namespace, for the page of `dovetail top --web`.

They are asked of Temporal from here, with what the person who has typed the command may read there: who may look at one
cluster's workers need not see all others, so no worker answers this.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document

KEPT_SECONDS: Final = 15.0  # an answer is given again to views that ask together


class Clusters:
    """One question at a time, and none where the last answer is young."""

    def __init__(self, ask: Callable[[], Document], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._busy = threading.Lock()
        self._found: tuple[float, Document] | None = None

    def document(self) -> Document:
        """What `dovetail fleet -o json` prints; CommandFailed where Temporal does not tell."""
        with self._busy:
            if self._found is None or self._clock() - self._found[0] > KEPT_SECONDS:
                found = self._ask()
                self._found = self._clock(), found
            return self._found[1]


def clusters_of_here() -> Clusters | None:
    """By the settings of this machine; None where nothing says where Temporal is."""
    from dovetail.connection.configuration import is_named

    return Clusters(_ask) if is_named() else None


def _ask() -> Document:
    from dovetail.answers.fleet.looking import fleet_of
    from dovetail.cli.commands.fleet import fleet_document
    from dovetail.connection.configuration import TemporalUnusable
    from dovetail.connection.temporal import connect
    from dovetail.settings.settings import SettingsError, read_settings

    async def asked() -> Document:
        settings = read_settings(os.environ, with_cloud=False)
        return fleet_document(await fleet_of(await connect(settings), time.time()))

    try:
        return asyncio.run(asked())
    except (SettingsError, TemporalUnusable) as error:
        raise CommandFailed(str(error)) from None
