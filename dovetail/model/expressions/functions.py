"""What expressions may call: functions of CEL, Kubernetes' quantities and versions, and Karpenter's min and max."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

from dovetail.model.expressions.values import OPERATORS, ExpressionError, kind_of, whole
from dovetail.model.values.resources import NANO, QuantityError, parse_quantity

_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,64}")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity, in thousand-millionths."""

    nano: int


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version; anything after a plus does not count."""

    numbers: tuple[int, int, int]
    pre: tuple[tuple[int, int, str], ...]  # (0, number, "") comes before (1, 0, text)

    def __lt__(self, other: "Semver") -> bool:
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.pre or not other.pre:
            return bool(self.pre) and not other.pre
        return self.pre < other.pre


def semver(text: object) -> Semver:
    found = _VERSION.fullmatch(text) if isinstance(text, str) and len(text) <= 256 else None
    if found is None:
        raise ExpressionError(f"no semantic version: {str(text)[:64]!r}")
    parts = (found[4] or "").split(".") if found[4] else []
    pre = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return Semver((int(found[1]), int(found[2]), int(found[3])), pre)


def quantity(text: object) -> Quantity:
    try:
        return Quantity(parse_quantity(_a(str, text), NANO))
    except QuantityError as error:
        raise ExpressionError(str(error)) from None


def _a(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ExpressionError(f"a {_KINDS[kind]} is needed, not a {kind_of(value)}")
    return value


_KINDS: Final[dict[type, str]] = {str: "text", Quantity: "quantity", Semver: "semantic version"}


def _is(read: Callable[[object], object]) -> Callable[[object], bool]:
    def is_one(value: object) -> bool:
        try:
            read(_a(str, value))
        except ExpressionError:
            return False
        return True

    return is_one


def _size(value: Any) -> int:
    if not isinstance(value, str | list | Mapping):
        raise ExpressionError(f"{kind_of(value)} has no size")
    return len(value)


def _order(left: Any, right: Any) -> int:
    if type(left) is not type(right) or not isinstance(left, Quantity | Semver):
        raise ExpressionError(f"{kind_of(left)} is not compared to {kind_of(right)}")
    a, b = (left.nano, right.nano) if isinstance(left, Quantity) else (left, right)
    return int(a > b) - int(a < b)


def _part(number: int) -> Callable[[Any], int]:
    return lambda value: int(_a(Semver, value).numbers[number])


def _amount(value: Any) -> int:
    return int(_a(Quantity, value).nano)


def _as_integer(value: Any) -> int:
    if _amount(value) % NANO:
        raise ExpressionError("a quantity that is no whole number")
    return whole(_amount(value) // NANO)


def _other(value: Any) -> int:
    """The second operand of add and sub, which may be a whole number too."""
    return int(value) * NANO if type(value) is int else _amount(value)


def _to_whole(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, str) and not _WHOLE.fullmatch(value)):
        raise ExpressionError(f"{str(value)[:64]!r} is no whole number")
    try:
        return whole(int(value))
    except (TypeError, ValueError, OverflowError):
        raise ExpressionError(f"{str(value)[:64]} is no whole number of 64 bits") from None


def _to_floating(value: Any) -> float:
    """Python also takes spaces and underscores."""
    try:
        if isinstance(value, bool) or re.search(r"[\s_]", str(value)):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise ExpressionError(f"{str(value)[:64]!r} is no number") from None


_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)

# By name and number of arguments.
FUNCTIONS: Final[dict[tuple[str, int], Callable[..., Any]]] = {
    ("quantity", 1): quantity,
    ("isQuantity", 1): _is(quantity),
    ("semver", 1): semver,
    ("isSemver", 1): _is(semver),
    ("size", 1): _size,
    ("int", 1): _to_whole,
    ("double", 1): _to_floating,
    ("min", 2): lambda one, other: other if OPERATORS["<"](other, one) else one,
    ("max", 2): lambda one, other: other if OPERATORS[">"](other, one) else one,
}

# By name and number of arguments, without the one before the dot.
METHODS: Final[dict[tuple[str, int], Callable[..., Any]]] = {
    ("size", 0): _size,
    ("startsWith", 1): lambda value, start: _a(str, value).startswith(_a(str, start)),
    ("endsWith", 1): lambda value, end: _a(str, value).endswith(_a(str, end)),
    ("contains", 1): lambda value, part: _a(str, part) in _a(str, value),
    ("lowerAscii", 0): lambda value: _a(str, value).translate(_LOWER),
    ("upperAscii", 0): lambda value: _a(str, value).translate(_UPPER),
    ("trim", 0): lambda value: _a(str, value).strip(),
    ("compareTo", 1): _order,
    ("isGreaterThan", 1): lambda value, other: _order(value, other) > 0,
    ("isLessThan", 1): lambda value, other: _order(value, other) < 0,
    ("major", 0): _part(0),
    ("minor", 0): _part(1),
    ("patch", 0): _part(2),
    ("sign", 0): lambda value: (_amount(value) > 0) - (_amount(value) < 0),
    ("isInteger", 0): lambda value: _amount(value) % NANO == 0,
    ("asInteger", 0): _as_integer,
    ("asApproximateFloat", 0): lambda value: _amount(value) / NANO,
    ("add", 1): lambda value, other: Quantity(_amount(value) + _other(other)),
    ("sub", 1): lambda value, other: Quantity(_amount(value) - _other(other)),
}
