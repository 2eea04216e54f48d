"""Which rules do the selector terms of an EC2NodeClass share (AWS-10 to AWS-12, AWS-15)?

A term is one entry of a list of selectors; the rules say which of its fields may stand together. Fields are given as
API name → attribute name, because the CEL side speaks the one and the models the other.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dovetail.api.schema.rules import Obeys, Rule, without_nulls

_FULL_TAGS = Rule(
    message="empty tag keys or values aren't supported",
    cel="self.all(key, key != '' && self[key] != '')",
    holds=lambda tags: all(key and value for key, value in tags.items()),
)
Tags = Annotated[dict[str, str], BeforeValidator(without_nulls), Field(max_length=20), Obeys(_FULL_TAGS)]


def _is_set(term: Any, field: str) -> bool:
    return getattr(term, field) is not None


def _cel_any(fields: dict[str, str]) -> str:
    return " || ".join(f"has(term.{api_name})" for api_name in fields)


def at_least_one(fields: dict[str, str]) -> Rule:
    listed = ", ".join(f"'{api_name}'" for api_name in fields)
    return Rule(
        message=f"expected at least one, got none, [{listed}]",
        cel=f"self.all(term, {_cel_any(fields)})",
        holds=lambda terms: all(any(_is_set(term, field) for field in fields.values()) for term in terms),
    )


def alone(name: str, others: dict[str, str], where: str) -> Rule:
    """A term with `name` has none of the others."""
    return Rule(
        message=f"'{name}' is mutually exclusive, cannot be set {where}",
        cel=f"!self.exists(term, has(term.{name}) && ({_cel_any(others)}))",
        holds=lambda terms: (
            not any(_is_set(term, name) and any(_is_set(term, field) for field in others.values()) for term in terms)
        ),
    )


def alone_in_some_term(name: str, others: dict[str, str], where: str) -> Rule:
    """Not every term has `name` together with one of the others."""
    return Rule(
        message=f"'{name}' is mutually exclusive, cannot be set {where}",
        cel=f"!self.all(term, has(term.{name}) && ({_cel_any(others)}))",
        holds=lambda terms: (
            not all(_is_set(term, name) and any(_is_set(term, field) for field in others.values()) for term in terms)
        ),
    )


def list_not_empty(field: str) -> Rule:
    return Rule(message=f"{field} cannot be empty", cel="self.size() != 0", holds=lambda terms: len(terms) > 0)


def same_names(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def together(what: str) -> str:
    return f"with a combination of other fields in {what}"
