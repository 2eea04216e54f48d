"""What an expression about a device may do with its values: CEL's operators, quantities, versions and texts.

CEL does not convert: `"1" == 1` is false, `"1" < 1` an error. A whole number has 64 bits.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from operator import ge, gt, le, lt
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

from dovetail.model.values.resources import NANO, QuantityError, parse_quantity

_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_LARGEST: Final = 2**63 - 1
_LONGEST: Final = 65_536  # of a text that an expression builds


class ExpressionError(ValueError):
    """An expression that cannot be read, or that has no value for a device."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity, in thousand-millionths."""

    nano: int


class Domains(dict[str, Mapping[str, object]]):
    """Attributes or capacities by domain; a domain that a device does not have is an empty map."""


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
    """The text as a version."""
    found = _VERSION.fullmatch(text) if isinstance(text, str) and len(text) <= 256 else None
    if found is None:
        raise ExpressionError(f"no semantic version: {str(text)[:64]!r}")
    parts = (found[4] or "").split(".") if found[4] else []
    pre = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return Semver((int(found[1]), int(found[2]), int(found[3])), pre)


def quantity(text: object) -> Quantity:
    """The text as a quantity."""
    try:
        return Quantity(parse_quantity(_text(text), NANO))
    except QuantityError as error:
        raise ExpressionError(str(error)) from None


def kind_of(value: object) -> str:
    """CEL's name for the kind of a value."""
    return _KINDS.get(type(value), "map" if isinstance(value, Mapping) else type(value).__name__)


_KINDS: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    list: "list",
    type(None): "null",
    Quantity: "quantity",
    Semver: "semver",
}


def equal(left: object, right: object) -> bool:
    """Whether two values are equal; of different kinds, only numbers can be."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return (numbers or type(left) is type(right)) and left == right


def compare(sign: str, left: Any, right: Any) -> bool:
    """One of the four comparisons, of two numbers or two texts."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (left, right))
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        raise ExpressionError(f"{kind_of(left)} {sign} {kind_of(right)} is not defined")
    return bool(_COMPARISONS[sign](left, right))


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def calculate(sign: str, left: Any, right: Any) -> object:
    """One of the five operations: of whole numbers, and `+` of texts and lists."""
    if sign == "+" and type(left) is type(right) and isinstance(left, str | list):
        if len(left) + len(right) > _LONGEST:
            raise ExpressionError("a text of more than 65,536 characters")
        return left + right
    if type(left) is not int or type(right) is not int:
        raise ExpressionError(f"{kind_of(left)} {sign} {kind_of(right)} is not defined")
    if sign in "/%":
        return _divided(sign, left, right)
    found = left + right if sign == "+" else left - right if sign == "-" else left * right
    return in_64_bits(found)


def _divided(sign: str, left: int, right: int) -> int:
    """Rounded towards zero, as CEL divides."""
    if right == 0:
        raise ExpressionError("a division by zero")
    whole = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return in_64_bits(whole if sign == "/" else left - whole * right)


def in_64_bits(number: int) -> int:
    """The number, if it is within CEL's 64 bits."""
    if not -_LARGEST - 1 <= number <= _LARGEST:
        raise ExpressionError("a whole number of more than 64 bits")
    return number


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
        return isinstance(value, str) and has_key(group, value)
    raise ExpressionError(f"{kind_of(value)} in {kind_of(group)} is not defined")


def has_key(group: Mapping[str, object], key: str) -> bool:
    """Whether a map has that key."""
    return key in group


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ExpressionError(f"a text is needed, not a {kind_of(value)}")
    return value


def _is(read: Callable[[object], object]) -> Callable[[object], bool]:
    def is_one(value: object) -> bool:
        try:
            read(_text(value))
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
    def part(value: Any) -> int:
        if not isinstance(value, Semver):
            raise ExpressionError(f"{kind_of(value)} is no semantic version")
        return int(value.numbers[number])

    return part


def _amount(value: Any) -> int:
    if not isinstance(value, Quantity):
        raise ExpressionError(f"{kind_of(value)} is no quantity")
    return int(value.nano)


def _whole(value: Any) -> int:
    nano: int = _amount(value)
    if nano % NANO:
        raise ExpressionError("a quantity that is no whole number")
    return in_64_bits(nano // NANO)


def _other(value: Any) -> int:
    """The second operand of add and sub, which may be a whole number too."""
    return int(value) * NANO if type(value) is int else _amount(value)


_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)

# By name and number of arguments.
FUNCTIONS: Final[dict[tuple[str, int], Callable[..., object]]] = {
    ("quantity", 1): quantity,
    ("isQuantity", 1): _is(quantity),
    ("semver", 1): semver,
    ("isSemver", 1): _is(semver),
    ("size", 1): _size,
}

# By name and number of arguments, without the one before the dot.
METHODS: Final[dict[tuple[str, int], Callable[..., object]]] = {
    ("size", 0): _size,
    ("startsWith", 1): lambda value, start: _text(value).startswith(_text(start)),
    ("endsWith", 1): lambda value, end: _text(value).endswith(_text(end)),
    ("contains", 1): lambda value, part: _text(part) in _text(value),
    ("lowerAscii", 0): lambda value: _text(value).translate(_LOWER),
    ("upperAscii", 0): lambda value: _text(value).translate(_UPPER),
    ("trim", 0): lambda value: _text(value).strip(),
    ("compareTo", 1): _order,
    ("isGreaterThan", 1): lambda value, other: _order(value, other) > 0,
    ("isLessThan", 1): lambda value, other: _order(value, other) < 0,
    ("major", 0): _part(0),
    ("minor", 0): _part(1),
    ("patch", 0): _part(2),
    ("sign", 0): lambda value: (_amount(value) > 0) - (_amount(value) < 0),
    ("isInteger", 0): lambda value: _amount(value) % NANO == 0,
    ("asInteger", 0): _whole,
    ("asApproximateFloat", 0): lambda value: _amount(value) / NANO,
    ("add", 1): lambda value, other: Quantity(_amount(value) + _other(other)),
    ("sub", 1): lambda value, other: Quantity(_amount(value) - _other(other)),
}
