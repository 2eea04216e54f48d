"""Mutations: a small change of the product that breaks one rule of the rule book."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.test_rules import rows

LIST = Path(__file__).with_name("rules.toml")


class StaleMutation(Exception):
    """The code that is to be spoiled has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """`before` stands once in the file and becomes `after`. `what`: the wrong behaviour, in words."""

    rule: str
    what: str
    file: str
    before: str
    after: str


def read_mutations(path: Path = LIST) -> tuple[Mutation, ...]:
    """All, in the order of the list."""
    listed = tomllib.loads(path.read_text())["mutation"]
    return tuple(
        Mutation(rule=rule, what=m["what"], file=m["file"], before=m["before"], after=m["after"])
        for m in listed
        for rule in m["rules"]
    )


def select(mutations: Iterable[Mutation], ids: Sequence[str]) -> tuple[Mutation, ...]:
    """Those of the rules, or of whole prefixes; all where none is named."""
    return tuple(m for m in mutations if not ids or m.rule in ids or m.rule.partition("-")[0] in ids)


def spoiled(text: str, mutation: Mutation) -> str:
    """The file's text with the mutation in it."""
    found = text.count(mutation.before)
    if found != 1:
        raise StaleMutation(f"stale: {mutation.before!r} stands {found} times in {mutation.file}")
    return text.replace(mutation.before, mutation.after)


@cache
def _by_rule() -> dict[str, tuple[str, ...]]:
    return {row.id: row.tests for row in rows()}


def named_tests(rule: str) -> tuple[str, ...]:
    """The tests that the rule's row names."""
    return _by_rule()[rule]
