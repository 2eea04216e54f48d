"""What a check of `dovetail doctor` found, and the four ways in which it can end."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check. `advice`: what to do if it fails."""

    name: str
    verdict: Literal["holds", "warns", "fails", "skipped"]
    found: str
    advice: str = ""


def fine(name: str, found: str) -> Check:
    return Check(name=name, verdict="holds", found=found)


def warned(name: str, found: str, advice: str) -> Check:
    """Dovetail works, and a person will miss something."""
    return Check(name=name, verdict="warns", found=found, advice=advice)


def failed(name: str, found: str, advice: str) -> Check:
    """Dovetail does not work, or not as it should."""
    return Check(name=name, verdict="fails", found=found, advice=advice)


def skipped(name: str, found: str) -> Check:
    return Check(name=name, verdict="skipped", found=found)


def rest_skipped(of: str, why: str, names: str) -> Check:
    """Several checks that one thing prevents: under a short name, with a text that lists them."""
    return skipped(f"rest of {of}", f"{why}; not checked: {names}")
