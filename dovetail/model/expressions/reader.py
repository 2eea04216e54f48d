"""Reads the part of CEL that formulas of a kubelet and selectors of devices need (AWS-24, PLC-202).

Understood: literals, lists, variables and their members, `[]`, `!`, `-`, `* / % + -`, comparisons, `in`, `&&`, `||`,
`? :`, `has()`, and the functions of functions.py. Left out: maps, macros over lists, regular expressions, which could
keep Python busy for ever, time, bytes and optional values. Python's eval would run what somebody wrote into an object.
Nothing that is understood loops; a text may be changed a hundred times over, so the longest expression takes a
millisecond or two.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Final

from dovetail.model.expressions.functions import FUNCTIONS, METHODS
from dovetail.model.expressions.tree import Call, Chain, Conditional, Constant, Node, Variable
from dovetail.model.expressions.values import ExpressionError, Unsigned, is_in, member_of, negative, truth, whole

_LONGEST: Final = 10_240  # characters; the limit of the API of devices
_DEEPEST: Final = 50
_MOST_MEMBERS: Final = 100
_TOKEN: Final = re.compile(
    r"""\s*+(?://[^\n]*+\n?\s*+)*+(?:
      (?P<double>(?:[0-9]*+\.[0-9]++(?:[eE][-+]?[0-9]++)?+|[0-9]++[eE][-+]?[0-9]++))
    | (?P<int>(?:0[xX][0-9a-fA-F]++|[0-9]++)[uU]?+)
    | (?P<raw>[rR](?:"[^"\r\n]*+"|'[^'\r\n]*+'))
    | (?P<text>"(?:[^"\\\r\n]|\\.)*+"|'(?:[^'\\\r\n]|\\.)*+')
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<sign>&&|\|\||[=!<>]=|[-+*/%!<>?:.,()\[\]])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_LEVELS: Final = (("||",), ("&&",), ("==", "!=", "<=", ">=", "<", ">", "in"), ("+", "-"), ("*", "/", "%"))
_LITERALS: Final = {"true": True, "false": False, "null": None}
_END: Final = ("end", "its end")


def read_tree(text: str, variables: tuple[str, ...]) -> Node:
    """The expression; ExpressionError if it is not understood."""
    try:
        return _Reader(text, variables).whole()
    except RecursionError:
        raise ExpressionError("nested too deep") from None


class _Reader:
    """One expression, by recursive descent."""

    def __init__(self, text: str, variables: tuple[str, ...]) -> None:
        if len(text) > _LONGEST:
            raise ExpressionError(f"an expression of {len(text)} characters; at most {_LONGEST} are read")
        self._variables = variables
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while (found := _TOKEN.match(text, place)) and (kind := str(found.lastgroup)) != "end":
            self._tokens.append((kind, found[kind]))
            place = found.end()
        if found is None:
            raise ExpressionError(f"not understood at character {place + 1}: {text[place : place + 20]!r}")
        self._next = self._depth = 0

    def whole(self) -> Node:
        found = self._choice()
        if self._next < len(self._tokens):
            raise ExpressionError(f"not understood from {self._token()[1]!r} on")
        return found

    def _token(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self, *signs: str) -> str:
        kind, text = self._token()
        if kind in ("sign", "name") and text in signs:
            self._next += 1
            return text
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise ExpressionError(f"{sign!r} is missing before {self._token()[1]!r}")

    def _choice(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError(f"nested more than {_DEEPEST} deep")
        found = self._level(0)
        if self._take("?"):
            yes = self._level(0)
            self._need(":")
            found = Conditional(found, yes, self._choice())
        self._depth -= 1
        return found

    def _level(self, number: int) -> Node:
        if number == len(_LEVELS):
            return self._signed()
        first, rest = self._level(number + 1), []
        while sign := self._take(*_LEVELS[number]):
            rest.append((sign, self._level(number + 1)))
        return Chain(first, tuple(rest)) if rest else first

    def _signed(self) -> Node:
        signs = []
        while sign := self._take("!", "-"):
            signs.append(sign)
        if len(signs) > _DEEPEST:
            raise ExpressionError(f"nested more than {_DEEPEST} deep")
        kind, text = self._token()
        if signs and signs[-1] == "-" and kind in ("int", "double"):  # the least number has no positive one
            signs.pop()
            self._tokens[self._next] = (kind, f"-{text}")
        found = self._members()
        for sign in reversed(signs):
            found = Call(sign, _not if sign == "!" else negative, (found,))
        return found

    def _members(self) -> Node:
        found, members = self._primary(), 0
        while sign := self._take(".", "["):
            members += 1
            if members > _MOST_MEMBERS:
                raise ExpressionError(f"nested more than {_MOST_MEMBERS} deep")
            if sign == "[":
                found = Call("[", member_of, (found, self._choice()))
                self._need("]")
                continue
            name = self._name()
            if self._take("("):
                arguments = self._until(")")
                found = Call(name, _known(METHODS, name, arguments), (found, *arguments))
            else:
                found = Call(".", member_of, (found, Constant(name)))
        return found

    def _name(self) -> str:
        kind, text = self._token()
        if kind != "name":
            raise ExpressionError(f"a name is missing before {text!r}")
        self._next += 1
        return text

    def _until(self, end: str) -> tuple[Node, ...]:
        """A comma before the end is a list's alone."""
        found: list[Node] = []
        while not self._take(end):
            if found:
                self._need(",")
                if end == "]" and self._take(end):
                    break
            found.append(self._choice())
        return tuple(found)

    def _primary(self) -> Node:
        if self._take("("):
            found = self._choice()
            self._need(")")
            return found
        if self._take("["):
            return Call("[]", lambda *parts: list(parts), self._until("]"))
        kind, text = self._token()
        if kind not in _READ and kind != "name":
            raise ExpressionError(f"a value is missing before {text!r}")
        self._next += 1
        return self._named(text) if kind == "name" else Constant(_READ[kind](text))

    def _named(self, name: str) -> Node:
        if name in _LITERALS:
            return Constant(_LITERALS[name])
        if self._take("("):
            if name == "has":
                return self._has()
            arguments = self._until(")")
            return Call(name, _known(FUNCTIONS, name, arguments), arguments)
        if name not in self._variables:
            raise ExpressionError(f"{name} is not known; there is {', '.join(self._variables)}")
        return Variable(name)

    def _has(self) -> Node:
        """Everything before the last dot must exist."""
        match self._members():
            case Call(".", _, arguments):
                self._need(")")
                return Call("has", lambda group, key: is_in(key, group), arguments)
        raise ExpressionError("has() asks for a member, as in has(device.attributes)")


def _known(among: dict[tuple[str, int], Any], name: str, arguments: tuple[Node, ...]) -> Any:
    function = among.get((name, len(arguments)))
    if function is None:
        raise ExpressionError(f"{name}() with {len(arguments)} arguments is not understood here")
    return function


def _not(value: object) -> bool:
    return not truth(value)


def _int(text: str) -> int:
    plain = text.rstrip("uU")
    try:
        number = int(plain, 16 if "x" in plain.lower() else 10)
    except ValueError:
        raise ExpressionError(f"{text[:30]} has too many digits") from None
    return whole(number, int if plain == text else Unsigned)


def _double(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ExpressionError(f"{text[:30]} is too large")
    return float(text)


_ESCAPED: Final = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))")
_ESCAPES: Final = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))


def _text(written: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[5]:
            return _ESCAPES[found[5]]
        return chr(int(found[4], 8) if found[4] else int(found[1] or found[2] or found[3], 16))

    try:
        return _ESCAPED.sub(plain, written[1:-1])
    except (KeyError, ValueError, OverflowError):
        raise ExpressionError(f"a text that cannot be read: {written[:40]}") from None


def _raw(written: str) -> str:
    return written[2:-1]


_READ: Final[dict[str, Callable[[str], Any]]] = {"int": _int, "double": _double, "text": _text, "raw": _raw}
