"""One row of the tables of accepted and refused manifests, and how rows are made.

The tables are read twice: tests/api shows each manifest to the models, tests/cluster to the real API server. A
refused one names the field and a piece of the error's text that only its own rule produces, in both places, so that
the right rule and not some other one has refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.api.manifests import Manifest, changed

REQUIRED = "Required value"
MATCH = "should match"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One manifest. `refusal` is empty where it is accepted, else a piece of the error at `field`."""

    cites: str
    what: str
    manifest: Manifest
    refusal: str = ""
    field: str = ""

    def __str__(self) -> str:
        return f"{self.cites} {self.manifest['kind']} {self.what}"


@dataclass(frozen=True, slots=True)
class At:
    """A refusal at another field than the one that was changed."""

    field: str
    refusal: str


def one(**fields: Any) -> list[dict[str, Any]]:
    """A list of one object."""
    return [fields]


def vary(cites: str, make: Callable[[], Manifest], path: str, refusal: str | At, values: dict[str, Any]) -> list[Case]:
    """A case for each value that is put in one place of a valid manifest; the error is expected there or At a field."""
    at = refusal if isinstance(refusal, At) else At(path, refusal)
    return [
        Case(cites=cites, what=what, manifest=changed(make(), path, value), refusal=at.refusal, field=at.field)
        for what, value in values.items()
    ]
