"""What an expression may do with its values: CEL's operators.

CEL does not convert: `"1" == 1` is false, `"1" < 1` an error. A whole number has 64 bits.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from operator import add, ge, gt, le, lt, mul, sub
from typing import Any, Final

_LONGEST: Final = 65_536  # of a text or list that an expression builds


class ExpressionError(ValueError):
    """An expression that cannot be read, or that has no value."""


class Unsigned(int):
    """A whole number without a sign, written 1u: it is compared with the others and not calculated with them."""


class Domains(dict[str, Mapping[str, object]]):
    """Attributes or capacities by domain; a domain that a device does not have is an empty map."""


def kind_of(value: object) -> str:
    """CEL's name for the kind of a value."""
    return _KINDS.get(type(value), "map" if isinstance(value, Mapping) else type(value).__name__.lower())


_KINDS: Final[dict[type, str]] = {
    int: "int",
    Unsigned: "uint",
    float: "double",
    str: "string",
    type(None): "null",
}
_BOUNDS: Final = {int: (-(2**63), 2**63 - 1), Unsigned: (0, 2**64 - 1)}


def whole(number: int, kind: type[int] = int) -> int:
    """The number, if it is within the 64 bits of its kind."""
    least, most = _BOUNDS[kind]
    if not least <= number <= most:
        raise ExpressionError(f"{str(number)[:30]} is no whole number of 64 bits")
    return kind(number)


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"true or false is needed, not a {kind_of(value)}")
    return value


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal; of different kinds, only numbers can be."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return (type(left) is type(right) or (_is_number(left) and _is_number(right))) and bool(left == right)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compare(sign: str, left: Any, right: Any) -> bool:
    alike = type(left) is type(right) and isinstance(left, str | bool)
    if not alike and not (_is_number(left) and _is_number(right)):
        raise ExpressionError(f"{kind_of(left)} {sign} {kind_of(right)} is not defined")
    return bool(_COMPARISONS[sign](left, right))


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def calculate(sign: str, left: Any, right: Any) -> Any:
    """One of the five operations, of two values of one kind."""
    kind = type(left)
    act = _OPERATIONS.get(kind, {}).get(sign) if kind is type(right) else None
    if act is None:
        raise ExpressionError(f"{kind_of(left)} {sign} {kind_of(right)} is not defined")
    return whole(act(left, right), kind) if kind in _BOUNDS else act(left, right)


def _quotient(left: int, right: int) -> int:
    """Rounded towards zero, as CEL divides."""
    if right == 0:
        raise ExpressionError("a division by zero")
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _ratio(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _joined(left: Any, right: Any) -> Any:
    if len(left) + len(right) > _LONGEST:
        raise ExpressionError("a text of more than 65,536 characters")
    return left + right


_WHOLE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": _quotient,
    "%": lambda left, right: left - _quotient(left, right) * right,
}
_OPERATIONS: Final[dict[type, dict[str, Callable[[Any, Any], Any]]]] = {
    int: _WHOLE,
    Unsigned: _WHOLE,
    float: {"+": add, "-": sub, "*": mul, "/": _ratio},
    str: {"+": _joined},
    list: {"+": _joined},
}


def negative(value: Any) -> Any:
    return -value if isinstance(value, float) else calculate("-", 0, value)


def member_of(value: Any, key: Any) -> object:
    """`value[key]`."""
    if isinstance(value, Mapping):
        if not isinstance(key, str) or key not in value:
            if isinstance(value, Domains):
                return {}
            raise ExpressionError(f"no such key: {str(key)[:64]}")
        return value[key]
    if isinstance(value, list) and type(key) is int:
        if not 0 <= key < len(value):
            raise ExpressionError(f"no element {key} in a list of {len(value)}")
        return value[key]
    raise ExpressionError(f"{kind_of(value)} has no member {str(key)[:64]}")


def is_in(value: object, group: Any) -> bool:
    """`value in group`."""
    if isinstance(group, list):
        return any(equal(value, each) for each in group)
    if isinstance(group, Mapping):
        return isinstance(value, str) and value in group
    raise ExpressionError(f"{kind_of(value)} in {kind_of(group)} is not defined")


OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **{sign: partial(_compare, sign) for sign in _COMPARISONS},
    **{sign: partial(calculate, sign) for sign in _WHOLE},
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "in": is_in,
}
