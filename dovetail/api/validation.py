"""Is this object one of ours, and if not, what is wrong with it, in one line?

`parse` takes one object as it stands in JSON and returns the model with defaults filled in, or raises `InvalidObject`,
whose text names kind, object and field: `NodePool default: spec.disruption.budgets[0].nodes: …`. `refuse_change` adds
the rules that compare an object with what it was. It is the only exception that a reader has to catch, because one
broken object must never stop the others.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from dovetail.api.schema.rules import AnyRule, Obeys, UpdateRule
from dovetail.api.schema.structural import ApiModel

Model = TypeVar("Model", bound=ApiModel)

SHOWN_INPUT = 80


class InvalidObject(ValueError):
    """An object that breaks the rules of its kind. `problems` has one (field, message) each."""

    def __init__(self, kind: str, name: str, problems: tuple[tuple[str, str], ...]) -> None:
        self.kind = kind
        self.name = name
        self.problems = problems
        super().__init__(f"{kind} {name}: " + "; ".join(": ".join(filter(None, problem)) for problem in problems))


def parse(model: type[Model], raw: Any) -> Model:
    """The object as a model, defaults filled in, unknown fields pruned."""
    try:
        return model.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = tuple((_path(problem["loc"]), _message(problem)) for problem in error.errors(include_url=False))
        raise InvalidObject(model.__name__, _name_of(raw), problems) from None


class InvalidSpec(ValueError):
    """A spec that its model refuses. `problems` has one (field, message) each; the field's path is joined with dots."""

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(": ".join(problem) for problem in problems))


def parse_spec(model: type[Model], raw: Any) -> Model:
    """A spec alone, as it stands on an object that the API server accepted."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InvalidSpec(tuple((".".join(map(str, e["loc"])), e["msg"]) for e in error.errors())) from None


def refuse_change(old: ApiModel, new: ApiModel) -> None:
    """Raise if the rules of the kind forbid this change (both are whole objects of one kind)."""
    problems = tuple(_forbidden_changes(old, new, ()))
    if problems:
        metadata = new.model_dump(include={"metadata"}, by_alias=True)
        raise InvalidObject(type(new).__name__, _name_of(metadata), problems)


def _forbidden_changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield from _broken(type(new).rules, old, new, path)
    for name, field in type(new).model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if before is None or after is None:
            continue
        inner = (*path, field.alias or name)
        yield from _broken(_rules_of(field), before, after, inner)
        if isinstance(after, ApiModel):
            yield from _forbidden_changes(before, after, inner)


def _broken(rules: tuple[AnyRule, ...], old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        if isinstance(rule, UpdateRule) and not rule.holds(old, new):
            yield _path(path), rule.message


def _rules_of(field: FieldInfo) -> tuple[AnyRule, ...]:
    return tuple(rule for note in field.metadata if isinstance(note, Obeys) for rule in note.rules)


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int) or not step.isidentifier():
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def _message(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "missing":
        return "Required value"
    if problem["type"] in ("rule", "duplicate") or isinstance(problem["input"], Mapping | list | BaseModel):
        return str(problem["msg"])
    shown = repr(problem["input"])
    return f"{problem['msg']}, not {shown if len(shown) <= SHOWN_INPUT else shown[:SHOWN_INPUT] + '…'}"


def _name_of(raw: Any) -> str:
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else "<without a name>"
