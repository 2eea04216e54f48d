"""All clusters of the Temporal namespace, for the page of `dovetail top --web`.

Temporal is asked from here, with the rights of the person at the terminal: access to one cluster's workers need not
mean access to all others, so no worker answers this.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from dovetail.answers.failures import CommandFailed
from dovetail.answers.shown.documents import Document

KEPT_SECONDS: Final = 15.0  # an answer is reused for views that ask at the same time


class Clusters:
    """One question at a time, and none while the last answer is young."""

    def __init__(self, ask: Callable[[], Document], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._busy = threading.Lock()
        self._found: tuple[float, Document] | None = None

    def document(self) -> Document:
        """What `dovetail fleet -o json` prints; CommandFailed if Temporal does not answer."""
        with self._busy:
            if self._found is None or self._clock() - self._found[0] > KEPT_SECONDS:
                found = self._ask()
                self._found = self._clock(), found
            return self._found[1]


def clusters_of_here() -> Clusters | None:
    """The clusters by the settings of this machine; None if nothing says where Temporal is."""
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
