"""What a formula may do with its values: types, operators and functions, as in CEL.

Every part of a formula knows its type before any instance type is looked at, so that a mistake is found when the class
is written and not when a node fails. CEL's rules differ from Python's, in which dividing whole numbers gives a fraction
and nothing ever overflows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Type = Literal["int", "double", "string", "bool"]
Variables = Mapping[str, Any]
Evaluation = Callable[[Variables], Any]

_LEAST, _MOST = -(2**63), 2**63 - 1


class FormulaError(ValueError):
    """A formula that cannot be understood, or that has no result."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a formula: its type, and how its value is computed."""

    type: Type
    value: Evaluation


def literal(type_: Type, value: Any) -> Part:
    """A value as written."""
    return Part(type_, lambda _: value)


def _whole(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise FormulaError("integer overflow")
    return value


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise FormulaError("division by zero")
    size = abs(left) // abs(right)
    return _whole(size if (left < 0) == (right < 0) else -size)


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise FormulaError("modulus by zero")
    return left - _quotient(left, right) * right


def _ratio(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


_WHOLE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: _whole(a + b),
    "-": lambda a, b: _whole(a - b),
    "*": lambda a, b: _whole(a * b),
    "/": _quotient,
    "%": _remainder,
}
_FLOATING: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _ratio,
}
_COMPARED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def binary(sign: str, left: Part, right: Part) -> Part:
    """left sign right. Whole and floating numbers do not mix: int() and double() convert."""
    if left.type != right.type:
        raise FormulaError(f"no '{sign}' for {left.type} and {right.type}")
    if sign in _COMPARED:
        return _applied("bool", _COMPARED[sign], (left, right))
    if left.type == "string" and sign == "+":
        return _applied("string", _FLOATING["+"], (left, right))
    known = {"int": _WHOLE, "double": _FLOATING}.get(left.type, {})
    if sign not in known:
        raise FormulaError(f"no '{sign}' for {left.type} and {right.type}")
    return _applied(left.type, known[sign], (left, right))


def negative(part: Part) -> Part:
    if part.type not in ("int", "double"):
        raise FormulaError(f"no '-' for {part.type}")
    return _applied(part.type, (lambda a: _whole(-a)) if part.type == "int" else (lambda a: -a), (part,))


def inverse(part: Part) -> Part:
    return _applied("bool", lambda a: not a, (_truth(part, "!"),))


def both(sign: str, left: Part, right: Part) -> Part:
    """&& and ||; the right side counts only if the left one leaves the result open."""
    one, two = _truth(left, sign).value, _truth(right, sign).value
    if sign == "&&":
        return Part("bool", lambda v: one(v) and two(v))
    return Part("bool", lambda v: one(v) or two(v))


def choice(test: Part, yes: Part, no: Part) -> Part:
    """test ? yes : no."""
    if yes.type != no.type:
        raise FormulaError(f"'?' gives {yes.type} or {no.type}")
    judge = _truth(test, "?").value
    return Part(yes.type, lambda v: yes.value(v) if judge(v) else no.value(v))


def member(part: Part, among: tuple[Part, ...]) -> Part:
    """part in [among]."""
    for each in among:
        if each.type != part.type:
            raise FormulaError(f"'in' looks for {part.type} among {each.type}")
    return Part("bool", lambda v: part.value(v) in [each.value(v) for each in among])


def call(name: str, arguments: tuple[Part, ...]) -> Part:
    """name(arguments): min, max and the conversions."""
    types = tuple(each.type for each in arguments)
    if name in ("min", "max") and types in (("int", "int"), ("double", "double")):
        return _applied(types[0], min if name == "min" else max, arguments)
    found = _FUNCTIONS.get((name, types))
    if found is None:
        raise FormulaError(f"no function {name}({', '.join(types)})")
    return _applied(found[0], found[1], arguments)


def method(target: Part, name: str, arguments: tuple[Part, ...]) -> Part:
    """target.name(arguments): the methods of a text."""
    types = tuple(each.type for each in arguments)
    if name == "size" and target.type == "string" and not arguments:
        return _applied("int", len, (target,))
    found = _QUESTIONS.get(name)
    if found is None or target.type != "string" or types != ("string",):
        raise FormulaError(f"no function {target.type}.{name}({', '.join(types)})")
    return _applied("bool", found, (target, *arguments))


def _applied(type_: Type, act: Callable[..., Any], parts: tuple[Part, ...]) -> Part:
    return Part(type_, lambda v: act(*[part.value(v) for part in parts]))


def _truth(part: Part, sign: str) -> Part:
    if part.type != "bool":
        raise FormulaError(f"no '{sign}' for {part.type}")
    return part


def _to_whole(value: Any) -> int:
    try:
        return _whole(int(value))
    except (ValueError, OverflowError):
        raise FormulaError(f"{value!r} is no integer") from None


def _to_floating(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise FormulaError(f"{value!r} is no number") from None


_FUNCTIONS: Final[Mapping[tuple[str, tuple[str, ...]], tuple[Type, Callable[..., Any]]]] = {
    ("int", ("int",)): ("int", _to_whole),
    ("int", ("double",)): ("int", _to_whole),
    ("int", ("string",)): ("int", _to_whole),
    ("double", ("int",)): ("double", _to_floating),
    ("double", ("double",)): ("double", _to_floating),
    ("double", ("string",)): ("double", _to_floating),
    ("size", ("string",)): ("int", len),
}
_QUESTIONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
}
