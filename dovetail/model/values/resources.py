"""Amounts of resources: exact integers, never floats.

Cpu is counted in nanocores and every other resource in whole units of its own, rounded away from zero, because
quantities compare exactly (PLC-77) and the smallest cpu that Kubernetes can write is `1n`.

Texts are read as Kubernetes reads them (resource.Quantity), and cheaply whatever they say: `1e30000000` is a quantity
that the API server accepts, and a number of 30 million digits. Digits and powers are therefore cut before anything is
converted, and what is beyond all reason counts as MOST.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dovetail.model.values.digits import MAX_INT, in_32_bits, integer
from dovetail.model.values.quoting import shown
from dovetail.model.values.remembering import MEGABYTE, remembered

Resources = Mapping[str, int]


class SharedAmounts(dict[str, int]):
    """Equal amounts as one shared object, which can be released when nobody uses it any more."""

    __slots__ = ("__weakref__",)


CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
NODES: Final = "nodes"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

NANO: Final = 10**9

_MOST_POWER: Final = 100
MOST: Final = 10**_MOST_POWER  # the largest amount, before it is counted in nanocores; sums of it are still floats
_KEPT_DIGITS: Final = 150  # more than MOST has in nanocores; of further digits only their presence counts

_QUANTITY: Final = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+(.*)", re.DOTALL)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Decimal suffixes as powers of ten; n, u and m are fractions.
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity."""


def _power_of(suffix: str, decimals: int) -> int | None:
    """The power of ten by which the digits, written without the point, must be multiplied."""
    if suffix in _BINARY:
        return -decimals
    power = _DECIMAL.get(suffix)
    if power is None and suffix[0] in "eE":
        power = integer(suffix[1:])
    return None if power is None else -in_32_bits(decimals + in_32_bits(-power))


def _may_lack_digits(suffix: str, power: int) -> bool:
    """Whether a text without any digit is still 0: `.`, `Ki` and `e3` are."""
    return _BINARY.get(suffix, 0) <= _BINARY["Ti"] and power >= _DECIMAL["n"]


def _rounded(digits: str, power: int, factor: int) -> int:
    """digits * 10**power * factor as a whole number, rounded up."""
    kept, cut = digits[:_KEPT_DIGITS], digits[_KEPT_DIGITS:]
    power += len(cut)
    if not kept:
        return 0
    if len(kept) + power > _MOST_POWER + 1:
        return MOST * factor
    value = int(kept) * factor
    if power >= 0:
        return min(value * int(10**power), MOST * factor)
    if power < -2 * _KEPT_DIGITS:
        return 1
    whole, rest = divmod(value, int(10**-power))
    return min(whole + bool(rest or cut.strip("0")), MOST * factor)


@remembered(4 * MEGABYTE)
def parse_quantity(text: str, scale: int = 1) -> int:
    """The value of a quantity times `scale`, as a whole number, rounded away from zero as Kubernetes rounds."""
    found = _QUANTITY.fullmatch(text)
    sign, whole, fraction, suffix = found.groups("") if found else ("", "", "", text)
    power = _power_of(suffix, len(fraction)) if text else None
    if power is None:
        raise QuantityError(f"not a quantity: {shown(text)}")
    if not text[: len(text) - len(suffix)].strip("+-.") and not _may_lack_digits(suffix, power):
        raise QuantityError(f"a quantity without digits: {shown(text)}")
    size = _rounded((whole + fraction).lstrip("0"), power, scale << _BINARY.get(suffix, 0))
    if suffix in _BINARY:
        size = min(size, MAX_INT * scale)  # as Kubernetes does, to quantities with these suffixes only
    return -size if sign == "-" else size


def is_quantity(value: str | int | float) -> bool:
    """Whether Kubernetes accepts it as an amount."""
    try:
        parse_quantity(str(value))
    except QuantityError:
        return False
    return True


def parse_amount(resource: str, text: str | int | float | None) -> int:
    """The amount of one resource, in the unit that Resources use for it. In JSON, Kubernetes accepts spaces around a
    quantity, and null as 0."""
    return 0 if text is None else parse_quantity(str(text).strip(), NANO if resource == CPU else 1)


def parse_resources(amounts: Mapping[str, str | int | float | None] | None) -> dict[str, int]:
    return {name: parse_amount(name, text) for name, text in (amounts or {}).items()}


@remembered(4 * MEGABYTE)
def _as_written(amounts: tuple[tuple[str, str], ...]) -> Resources:
    return {name: parse_amount(name, text) for name, text in amounts}


def shared_resources(amounts: Mapping[str, str | int | float | None] | None) -> Resources:
    """A resource list as one object, never changed, shared by all identical lists: many nodes are of one type."""
    if not amounts:
        return {}
    return _as_written(tuple([(name, "0" if text is None else str(text)) for name, text in amounts.items()]))


def format_amount(resource: str, amount: int) -> str:
    """The amount as a Kubernetes quantity that parses back to the same amount."""
    if abs(amount) >= MOST * (NANO if resource == CPU else 1):
        return f"{'-' if amount < 0 else ''}1e{_MOST_POWER}"
    if resource != CPU:
        return str(amount)
    for suffix, unit in (("", NANO), ("m", NANO // 10**3), ("u", NANO // 10**6)):
        if amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return f"{amount}n"


def format_resources(amounts: Resources) -> dict[str, str]:
    """Resources as a Kubernetes resource list, sorted by name."""
    return {name: format_amount(name, amounts[name]) for name in sorted(amounts)}


def total(lists: Iterable[Resources]) -> dict[str, int]:
    """The sum, resource by resource."""
    result: dict[str, int] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            result[name] = result.get(name, 0) + amount
    return result


def subtract(have: Resources, used: Resources) -> dict[str, int]:
    """What is left of `have`; resources that only `used` names go negative."""
    result = dict(have)
    for name, amount in used.items():
        result[name] = result.get(name, 0) - amount
    return result


def fits(want: Resources, have: Resources) -> bool:
    """PLC-76: no entry of `have` is negative, and each wanted amount is there (an absent one is 0)."""
    if any(amount < 0 for amount in have.values()):
        return False
    return all(amount <= have.get(name, 0) for name, amount in want.items())
