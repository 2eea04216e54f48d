"""Reads a selector of devices: the part of CEL that asks about attributes and capacities.

Understood: literals, lists, `device` and its members, `[]`, `!`, `-`, `* / % + -`, comparisons, `in`, `&&`, `||`,
`? :`, `has()`, and the functions of expression_values.py. Left out: macros over lists, regular expressions, optional
values. Nothing that is understood loops; a text may be changed a hundred times over, so the longest expression takes a
millisecond or two, and a search counts its evaluations by their length.
"""

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from dovetail.placement.devices.expression_values import (
    FUNCTIONS,
    METHODS,
    ExpressionError,
    calculate,
    compare,
    equal,
    in_64_bits,
    is_in,
    kind_of,
    member_of,
)

Value = Any
Evaluation = Callable[[Value], Value]  # of a device, as expressions see it

_LONGEST: Final = 10_240  # characters; the API's own limit
_DEEPEST: Final = 100
_TOKEN: Final = re.compile(
    r"""\s*+(?://[^\n]*+\n?\s*+)*+(?:
      (?P<number>(?:0[xX][0-9a-fA-F]++|[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)[uU]?+)
    | (?P<text>[rR]?(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<sign>&&|\|\||[=!<>]=|[-+*/%!<>?:.,()\[\]])
    )""",
    re.VERBOSE,
)
_LITERALS: Final[dict[str, Value]] = {"true": True, "false": False, "null": None}


@lru_cache(maxsize=512)
def _read(text: str) -> Evaluation | str:
    try:
        return _Reader(text).whole()
    except ExpressionError as error:
        return str(error)
    except RecursionError:
        return "nested too deep"


def read_expression(text: str) -> Evaluation:
    """The expression as a function of a device; ExpressionError if it is not understood."""
    found = _read(text)
    if isinstance(found, str):
        raise ExpressionError(found)
    return found


class _Reader:
    """One expression. Each method reads one level of precedence."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ExpressionError(f"an expression of {len(text)} characters; at most {_LONGEST} are read")
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None or found.lastgroup is None:
                raise ExpressionError(f"not understood at character {place + 1}: {text[place : place + 20]!r}")
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()
        self._next = self._depth = 0

    def whole(self) -> Evaluation:
        found = self._choice()
        if self._next < len(self._tokens):
            raise ExpressionError(f"not understood from {self._tokens[self._next][1]!r} on")
        return found

    def _peek(self) -> str:
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("end", "")
        return text if kind == "sign" or (kind == "name" and text == "in") else ""

    def _take(self, *signs: str) -> str:
        found = self._peek()
        if found and found in signs:
            self._next += 1
            return found
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            at = self._tokens[self._next][1] if self._next < len(self._tokens) else "its end"
            raise ExpressionError(f"{sign!r} is missing before {at!r}")

    def _name(self) -> str:
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("end", "its end")
        if kind != "name":
            raise ExpressionError(f"a name is missing before {text!r}")
        self._next += 1
        return text

    def _choice(self) -> Evaluation:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError(f"nested more than {_DEEPEST} deep")
        found = self._either()
        if self._take("?"):
            first = self._choice()
            self._need(":")
            found = _chosen(found, first, self._choice())
        self._depth -= 1
        return found

    def _either(self) -> Evaluation:
        parts = [self._both()]
        while self._take("||"):
            parts.append(self._both())
        return _joined(parts, True) if len(parts) > 1 else parts[0]

    def _both(self) -> Evaluation:
        parts = [self._relation()]
        while self._take("&&"):
            parts.append(self._relation())
        return _joined(parts, False) if len(parts) > 1 else parts[0]

    def _relation(self) -> Evaluation:
        found = self._sum()
        sign = self._take("==", "!=", "<=", ">=", "<", ">", "in")
        return _related(sign, found, self._sum()) if sign else found

    def _sum(self) -> Evaluation:
        return self._operations(self._product, "+", "-")

    def _product(self) -> Evaluation:
        return self._operations(self._signed, "*", "/", "%")

    def _operations(self, part: Callable[[], Evaluation], *signs: str) -> Evaluation:
        first, rest = part(), []
        while sign := self._take(*signs):
            rest.append((sign, part()))
        return _calculated(first, rest) if rest else first

    def _signed(self) -> Evaluation:
        signs = []
        while sign := self._take("!", "-"):
            signs.append(sign)
        found = self._with_members()
        if len(signs) > _DEEPEST:
            raise ExpressionError(f"nested more than {_DEEPEST} deep")
        for sign in reversed(signs):
            found = _not(found) if sign == "!" else _negative(found)
        return found

    def _with_members(self) -> Evaluation:
        return self._members()[0]

    def _members(self) -> tuple[Evaluation, tuple[Evaluation, str] | None]:
        """A value with its members. If the last member is selected by name, also its parent and that name."""
        found, members = self._primary(), 0
        last: tuple[Evaluation, str] | None = None
        while sign := self._take(".", "["):
            members += 1
            if members > _DEEPEST:
                raise ExpressionError(f"nested more than {_DEEPEST} deep")
            if sign == "[":
                found, last = _member(found, self._choice()), None
                self._need("]")
                continue
            name = self._name()
            if self._take("("):
                found, last = self._method(found, name), None
            else:
                found, last = _member(found, _constant(name)), (found, name)
        return found, last

    def _method(self, of: Evaluation, name: str) -> Evaluation:
        arguments = self._list(")")
        function = METHODS.get((name, len(arguments)))
        if function is None:
            raise ExpressionError(f"{name}() with {len(arguments)} arguments is not understood here")
        return _called(function, [of, *arguments])

    def _list(self, end: str) -> list[Evaluation]:
        found: list[Evaluation] = []
        while not self._take(end):
            if found:
                self._need(",")
                if self._take(end):
                    break
            found.append(self._choice())
        return found

    def _primary(self) -> Evaluation:
        if self._take("("):
            found = self._choice()
            self._need(")")
            return found
        if self._take("["):
            parts = self._list("]")
            return lambda device: [part(device) for part in parts]
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("end", "its end")
        self._next += 1
        if kind == "number":
            return _constant(_number(text))
        if kind == "text":
            return _constant(_text(text))
        if kind != "name":
            raise ExpressionError(f"a value is missing before {text!r}")
        return self._named(text)

    def _named(self, name: str) -> Evaluation:
        if name in _LITERALS:
            return _constant(_LITERALS[name])
        if self._take("("):
            return self._function(name)
        if name != "device":
            raise ExpressionError(f"{name} is not known; there is device")
        return lambda device: device

    def _function(self, name: str) -> Evaluation:
        if name == "has":
            return self._has()
        arguments = self._list(")")
        function = FUNCTIONS.get((name, len(arguments)))
        if function is None:
            raise ExpressionError(f"{name}() with {len(arguments)} arguments is not understood here")
        return _called(function, arguments)

    def _has(self) -> Evaluation:
        """has(a.b): whether a has a member of that name. Everything before the last dot must exist."""
        _, last = self._members()
        self._need(")")
        if last is None:
            raise ExpressionError("has() asks for a member, as in has(device.attributes)")
        of, name = last
        return lambda device: is_in(name, of(device))


def _number(text: str) -> Value:
    plain = text.rstrip("uU")
    if plain[:2] in ("0x", "0X"):
        return in_64_bits(int(plain[2:][:64], 16))
    if any(each in plain for each in ".eE"):
        return float(plain)
    return in_64_bits(int(plain[:64]))


def _text(written: str) -> str:
    if written[0] in "rR":
        return written[2:-1]
    try:
        return str(ast.literal_eval(written))
    except (SyntaxError, ValueError):
        raise ExpressionError(f"a text that cannot be read: {written[:40]}") from None


def _constant(value: Value) -> Evaluation:
    return lambda _: value


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"true or false is needed, not a {kind_of(value)}")
    return value


def _joined(parts: list[Evaluation], decisive: bool) -> Evaluation:
    """`||` or `&&`: a part that decides the result does so even if the part on the other side is an error."""

    def joined(device: Value) -> bool:
        failed: ExpressionError | None = None
        for part in parts:
            try:
                if _truth(part(device)) is decisive:
                    return decisive
            except ExpressionError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return not decisive

    return joined


def _chosen(condition: Evaluation, first: Evaluation, second: Evaluation) -> Evaluation:
    return lambda device: first(device) if _truth(condition(device)) else second(device)


def _related(sign: str, left: Evaluation, right: Evaluation) -> Evaluation:
    if sign == "==":
        return lambda device: equal(left(device), right(device))
    if sign == "!=":
        return lambda device: not equal(left(device), right(device))
    if sign == "in":
        return lambda device: is_in(left(device), right(device))
    return lambda device: compare(sign, left(device), right(device))


def _calculated(first: Evaluation, rest: list[tuple[str, Evaluation]]) -> Evaluation:
    def calculated(device: Value) -> Value:
        found = first(device)
        for sign, part in rest:
            found = calculate(sign, found, part(device))
        return found

    return calculated


def _not(of: Evaluation) -> Evaluation:
    return lambda device: not _truth(of(device))


def _negative(of: Evaluation) -> Evaluation:
    def negative(device: Value) -> Value:
        found = of(device)
        return -found if isinstance(found, float) else calculate("-", 0, found)

    return negative


def _member(of: Evaluation, key: Evaluation) -> Evaluation:
    return lambda device: member_of(of(device), key(device))


def _called(function: Callable[..., Value], arguments: list[Evaluation]) -> Evaluation:
    return lambda device: function(*[argument(device) for argument in arguments])
