"""What is measured at a scrape and follows from no snapshot: the parts of the product hand in their lines here.

A part registers its source once, when it is loaded; the scrape asks those that are this worker's to publish.
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
