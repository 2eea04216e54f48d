"""How is a rule that spans values said once, for the API server and for the models alike?

A `Rule` holds the message, the CEL expression that goes into the CRD and the same condition in Python, side by side; an
`UpdateRule` compares an object with what it was. `Obeys` ties rules to a type. Two lists of rules in two places would
come apart. tests/cluster/test_crds.py shows the API server each refused object, so that the two sides of a rule cannot
drift apart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition on one value. `holds` sees the validated value, `cel` the same value as `self`."""

    message: str
    cel: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRule:
    """A condition on a change. `holds` gets (old, new); `cel` speaks of `oldSelf` and is skipped at creation."""

    message: str
    cel: str
    holds: Callable[[Any, Any], bool]


AnyRule = Rule | UpdateRule


def refuse_broken(rules: tuple[AnyRule, ...], value: Any) -> None:
    """All broken rules at once, as the API server lists them."""
    broken = [rule.message for rule in rules if isinstance(rule, Rule) and not rule.holds(value)]
    if broken:
        raise PydanticCustomError("rule", "{broken}", {"broken": "; ".join(broken)})


def with_validations(schema: JsonSchemaValue, rules: tuple[AnyRule, ...]) -> JsonSchemaValue:
    """The JSON schema with the rules' CEL side added to it."""
    if not rules:
        return schema
    stated = [{"message": rule.message, "rule": rule.cel} for rule in rules]
    return {**schema, VALIDATIONS: [*schema.get(VALIDATIONS, []), *stated]}


class Obeys:
    """Annotation: values of this type obey these rules."""

    def __init__(self, *rules: AnyRule) -> None:
        self.rules = rules

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return with_validations(handler(schema), self.rules)

    def _checked(self, value: Any) -> Any:
        refuse_broken(self.rules, value)
        return value


def unique_keys_only(name: str, keys: list[str]) -> None:
    """Lists of type set or map: the API server refuses a second entry with the same key."""
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise PydanticCustomError(
            "duplicate", "Duplicate value: {name} {twice}", {"name": name, "twice": ", ".join(twice)}
        )


def without_nulls(value: Any) -> Any:
    """A null counts as absent: the API server prunes it before it fills in defaults."""
    if isinstance(value, Mapping):
        return {key: entry for key, entry in value.items() if entry is not None}
    return value
