"""Which name of ours stands for which placeholder of theirs: one to one, throughout a case.

`<template-2>` may be any name, but the same name everywhere and no other placeholder's; `<time>` and the like stand
for anything, each time anew.
"""

import re
from dataclasses import dataclass, field
from typing import Final

_PLACEHOLDER: Final = re.compile(r"<([a-z]+(?:-[a-z]+)*)(?:-(\d+))?>")
_FREE: Final = frozenset({"time", "token", "endpoint", "apiserver"})


@dataclass(slots=True)
class Renaming:
    """Placeholders bound so far, and by which of our names."""

    ours_of: dict[str, str] = field(default_factory=dict)
    theirs_of: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "Renaming":
        """For a trial."""
        return Renaming(dict(self.ours_of), dict(self.theirs_of))

    def become(self, other: "Renaming") -> None:
        """A trial that succeeded."""
        self.ours_of, self.theirs_of = other.ours_of, other.theirs_of

    def match(self, theirs: str, ours: str) -> bool:
        """Whether the texts are equal up to the renaming; binds what was not bound."""
        if "<" not in theirs:
            return theirs == ours
        found = self._pattern(theirs).fullmatch(ours)
        if found is None:
            return False
        trial = self.copy()
        for name, value in zip(_placeholders(theirs), found.groups(), strict=True):
            if not trial._bind(name, value):
                return False
        self.become(trial)
        return True

    def _pattern(self, theirs: str) -> re.Pattern[str]:
        """Everything outside the placeholders as it is written."""
        parts, at = [], 0
        for found in _PLACEHOLDER.finditer(theirs):
            parts += [re.escape(theirs[at : found.start()]), "(.*?)"]
            at = found.end()
        return re.compile("".join(parts) + re.escape(theirs[at:]), re.DOTALL)

    def _bind(self, placeholder: str, value: str) -> bool:
        kind, number = _PLACEHOLDER.fullmatch(placeholder).groups()  # type: ignore[union-attr] # the same pattern found it
        if kind in _FREE or number is None:
            return True
        if not value:
            return False
        bound = self.ours_of.setdefault(placeholder, value)
        return bound == value and self.theirs_of.setdefault(f"{kind} {value}", placeholder) == placeholder


def _placeholders(text: str) -> list[str]:
    return [found.group(0) for found in _PLACEHOLDER.finditer(text)]
