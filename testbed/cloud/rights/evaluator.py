"""A small evaluator of IAM policies: whether a statement allows an action on a resource, its conditions included.

Only what the shipped template uses is known; anything else raises, so that a new condition is not passed over.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

Keys = Mapping[str, str | tuple[str, ...]]


class Asked(NamedTuple):
    """One question to IAM: the action, the resource, and the keys that conditions may name."""

    action: str
    resource: str
    keys: Keys


def allows(statements: Iterable[dict[str, Any]], asked: Asked) -> bool:
    """Whether any statement allows the call; there is no Deny among them."""
    return any(_applies(statement, asked) for statement in statements)


def _applies(statement: dict[str, Any], asked: Asked) -> bool:
    assert statement["Effect"] == "Allow"
    resources = [statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"]
    if asked.action not in statement["Action"] or not any(fnmatchcase(asked.resource, each) for each in resources):
        return False
    return all(
        _TESTS[operator](asked.keys, key, [wanted] if isinstance(wanted, str) else wanted)
        for operator, entries in statement.get("Condition", {}).items()
        for key, wanted in entries.items()
    )


def _values(keys: Keys, key: str) -> list[str]:
    found = keys.get(key, ())
    return [found] if isinstance(found, str) else list(found)


def _equals(keys: Keys, key: str, wanted: list[str]) -> bool:
    return any(value in wanted for value in _values(keys, key))


def _like(keys: Keys, key: str, wanted: list[str]) -> bool:
    return any(fnmatchcase(value, pattern) for value in _values(keys, key) for pattern in wanted)


def _equals_if_exists(keys: Keys, key: str, wanted: list[str]) -> bool:
    return key not in keys or _equals(keys, key, wanted)


def _absent(keys: Keys, key: str, wanted: list[str]) -> bool:
    assert wanted == ["true"]
    return key not in keys


def _all_equal(keys: Keys, key: str, wanted: list[str]) -> bool:
    return all(value in wanted for value in _values(keys, key))


_TESTS: dict[str, Callable[[Keys, str, list[str]], bool]] = {
    "StringEquals": _equals,
    "StringLike": _like,
    "StringEqualsIfExists": _equals_if_exists,
    "Null": _absent,
    "ForAllValues:StringEquals": _all_equal,
}
