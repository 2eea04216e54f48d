"""The differences from recorded results that are meant, word for word: anything else in such a case is a failure."""

from collections.abc import Mapping
from typing import Final

# id of the case -> the rule that says why, and the difference.
NAMED: Final[Mapping[str, tuple[str, str]]] = {
    "v3-config-1090": ("PLQ-26", "existing: ours {'n0': ['p3', 'p5']}, recorded {'n0': ['p3', 'p4', 'p5']}"),
}


def rule_of(name: str, difference: str) -> str | None:
    """The rule that says why this case differs so; None where nothing says it."""
    rule, meant = NAMED.get(name, ("", ""))
    return rule if rule and difference == meant else None
