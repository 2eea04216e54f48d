"""What is measured at a scrape but follows from no snapshot: the parts of the product register their lines here.

A part registers its source once, when it is loaded; the scrape asks the sources that this worker publishes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Lines as Prometheus reads them. `duty`: the loop whose worker publishes them; empty: every worker does."""

    lines: Callable[[], Iterable[str]]
    duty: str = ""


SOURCES: Final[list[Source]] = []


def register(source: Source) -> None:
    """Ask this source at each scrape from now on."""
    SOURCES.append(source)
