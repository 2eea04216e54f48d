"""What whoever starts a worker brings along: the parts of the commands that run within it.

What explains and checks stands above the worker, which knows it by these names alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from dovetail.activities.identity.judge_version import Findings, nobody_looks
from dovetail.background.supervised import Work
from dovetail.worker.absence.presence import TemporalPresence
from dovetail.worker.endpoints import Page
from dovetail.worker.settings import Settings
from dovetail.worker.shadow.shadow import Shadow
from dovetail.worker.wiring import World


class PagesOf(Protocol):
    """The pages of a worker, by the path that they stand below. `shadow`: of a worker beside Karpenter alone."""

    def __call__(
        self, settings: Settings, world: World, presence: TemporalPresence, shadow: Shadow | None = None
    ) -> Mapping[str, Page]:
        """Made once, when the worker starts."""


def no_pages(
    settings: Settings, world: World, presence: TemporalPresence, shadow: Shadow | None = None
) -> Mapping[str, Page]:
    """Of a worker that answers no questions."""
    return {}


def no_duties(settings: Settings, presence: TemporalPresence) -> Mapping[str, Work]:
    """Of a worker that has none besides its own."""
    return {}


def no_findings(settings: Settings, world: World, presence: TemporalPresence) -> Findings:
    """Of a worker whose version passes no gate."""
    return nobody_looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Each is made once, when the worker starts. `duties`: what it does all the time besides, by the name that its
    health has; `findings`: what a gate asks of its version."""

    pages: PagesOf = no_pages
    duties: Callable[[Settings, TemporalPresence], Mapping[str, Work]] = no_duties
    findings: Callable[[Settings, World, TemporalPresence], Findings] = no_findings


NOTHING: Final = Brought()
