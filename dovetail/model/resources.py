"""Amounts of resources: exact integers, never floats.

Cpu is counted in nanocores and every other resource in whole units of its own, rounded up, because quantities compare
exactly (PLC-77) and the smallest cpu that Kubernetes can write is `1n`.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

Resources = Mapping[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
NODES: Final = "nodes"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

NANO: Final = 10**9

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
# Decimal suffixes as powers of ten; n, u and m are fractions.
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity."""


def _split(text: str) -> tuple[int, int, int]:
    """A quantity as (digits, power of ten, multiplier): the value is digits * 10**power * multiplier."""
    body, multiplier, power = text, 1, 0
    if text[-2:] in _BINARY:
        body, multiplier = text[:-2], _BINARY[text[-2:]]
    elif text[-1:] in _DECIMAL and not text[-1:].isdigit():
        body, power = text[:-1], _DECIMAL[text[-1:]]
    else:
        mantissa, mark, exponent = text.replace("E", "e").partition("e")
        if mark:
            body, power = mantissa, int(exponent)
    whole, _, fraction = body.partition(".")
    digits = int((whole or "0") + fraction) if whole not in {"-", "+"} else int(whole + (fraction or ""))
    return digits, power - len(fraction), multiplier


@lru_cache(maxsize=65536)
def parse_quantity(text: str, scale: int = 1) -> int:
    """The value of a quantity times `scale`, rounded up to an integer."""
    try:
        digits, power, multiplier = _split(text)
    except (ValueError, IndexError):
        raise QuantityError(f"not a quantity: {text!r}") from None
    value = digits * multiplier * scale
    if power >= 0:
        return value * int(10**power)
    return -(-value // int(10**-power))


def parse_amount(resource: str, text: str | int | float) -> int:
    """The amount of one resource, in the unit that Resources use for it."""
    return parse_quantity(str(text), NANO if resource == CPU else 1)


def parse_resources(amounts: Mapping[str, str | int | float] | None) -> dict[str, int]:
    """A Kubernetes resource list as Resources."""
    return {name: parse_amount(name, text) for name, text in (amounts or {}).items()}


@lru_cache(maxsize=65536)
def _as_written(amounts: tuple[tuple[str, str | int | float], ...]) -> Resources:
    return {name: parse_amount(name, text) for name, text in amounts}


def shared_resources(amounts: Mapping[str, str | int | float] | None) -> Resources:
    """A resource list as one object, never changed, for all lists written alike: many nodes are of one type."""
    return _as_written(tuple(amounts.items())) if amounts else {}


def format_amount(resource: str, amount: int) -> str:
    """The amount as a Kubernetes quantity that parses back to the same amount."""
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
