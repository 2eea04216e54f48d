"""Mutations: a small change of the product that breaks one rule of the rule book."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutations.places import places, replaced
from tests.test_rules import rows

LIST = Path(__file__).with_name("rules.toml")


class StaleMutation(Exception):
    """The code that is to be spoiled has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """In what `at` names (`file:dotted.name`), `code` becomes other code. `what`: the wrong behaviour, in words."""

    rule: str
    what: str
    at: str
    code: str
    becomes: str
    nth: int | None = None  # from 1, where it stands there more than once

    @property
    def file(self) -> str:
        """Where it is, from the top of the repository."""
        return self.at.partition(":")[0]


def read_mutations(path: Path = LIST) -> tuple[Mutation, ...]:
    """All, in the order of the list."""
    listed = tomllib.loads(path.read_text())["mutation"]
    return tuple(
        Mutation(rule=rule, **{key: value for key, value in m.items() if key != "rules"})
        for m in listed
        for rule in m["rules"]
    )


def select(mutations: Iterable[Mutation], ids: Sequence[str]) -> tuple[Mutation, ...]:
    """Those of the rules, or of whole prefixes; all where none is named."""
    return tuple(m for m in mutations if not ids or m.rule in ids or m.rule.partition("-")[0] in ids)


def spoiled(text: str, mutation: Mutation) -> str:
    """The file's text with the mutation in it."""
    found = places(text, mutation.at.partition(":")[2], mutation.code)
    nth = mutation.nth or 1
    if nth > len(found) or (mutation.nth is None and len(found) != 1):
        raise StaleMutation(f"stale: {mutation.code!r} stands {len(found)} times in {mutation.at}")
    return replaced(text, found[nth - 1], mutation.becomes)


@cache
def _by_rule() -> dict[str, tuple[str, ...]]:
    return {row.id: row.tests for row in rows()}


def named_tests(rule: str) -> tuple[str, ...]:
    """The tests that the rule's row names."""
    return _by_rule()[rule]
