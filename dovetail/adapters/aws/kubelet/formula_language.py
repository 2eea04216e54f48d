"""Reads a formula: the part of CEL that numbers for a kubelet need (AWS-24).

Types are checked while reading; the result is a function of an instance type's facts. Left out of CEL: maps, macros,
time and bytes, which no number needs, and `matches`, whose patterns could keep Python busy forever. Python's eval
would run whatever is written into a class.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dovetail.adapters.aws.kubelet import formula_values as values
from dovetail.adapters.aws.kubelet.formula_values import FormulaError, Part, Type

VARIABLES: Final[Mapping[str, Type]] = {
    "vcpus": "int",
    "memory_mib": "int",
    "default_enis": "int",
    "ips_per_eni": "int",
    "max_pods": "int",
    "instance_type": "string",
}
_MOST_CHARACTERS: Final = 4096
_DEEPEST: Final = 50
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)|(?P<int>0[xX][0-9a-fA-F]+|\d+)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:(),.\[\]]))"
)
_LEVELS: Final = (("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was parsed and checked."""

    text: str
    part: Part

    def result(self, variables: values.Variables) -> int:
        """Its value for these facts, cut to a whole number. FormulaError if it has none."""
        found = self.part.value(variables)
        if isinstance(found, float) and not math.isfinite(found):
            raise FormulaError(f"{self.text}: the result is not finite")
        return int(found)


@lru_cache(maxsize=1024)
def read_formula(text: str) -> Formula:
    """Raises FormulaError if it cannot be understood or is not a number."""
    if len(text) > _MOST_CHARACTERS:
        raise FormulaError(f"longer than {_MOST_CHARACTERS} characters")
    reader = _Reader(_tokens(text))
    part = reader.whole()
    if part.type not in ("int", "double"):
        raise FormulaError(f"{text}: gives a {part.type}, not a number")
    return Formula(text, part)


class _Token(NamedTuple):
    kind: str
    text: str


_END: Final = _Token("", "")


def _tokens(text: str) -> list[_Token]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            raise FormulaError(f"{text[at:].strip()[:20]!r} is not understood")
        found.append(_Token(token.lastgroup, token[token.lastgroup]))
        at = token.end()
    return found


class _Reader:
    """Recursive descent, one method per level of binding."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def whole(self) -> Part:
        part = self._choice()
        if self._at < len(self._tokens):
            raise FormulaError(f"{self._tokens[self._at].text!r} is out of place")
        return part

    def _next(self, *wanted: str) -> str:
        """Take and return the next token if it is one of these; else empty."""
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else _END
        if kind != "string" and text and text in wanted:
            self._at += 1
            return text
        return ""

    def _must(self, wanted: str) -> None:
        if not self._next(wanted):
            raise FormulaError(f"{wanted!r} is missing")

    def _choice(self) -> Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise FormulaError("nested too deeply")
        test = self._either()
        if self._next("?"):
            yes = self._either()
            self._must(":")
            test = values.choice(test, yes, self._choice())
        self._depth -= 1
        return test

    def _either(self) -> Part:
        left = self._also()
        while self._next("||"):
            left = values.both("||", left, self._also())
        return left

    def _also(self) -> Part:
        left = self._level(0)
        while self._next("&&"):
            left = values.both("&&", left, self._level(0))
        return left

    def _level(self, number: int) -> Part:
        if number == len(_LEVELS):
            return self._signed()
        left = self._level(number + 1)
        while sign := self._next(*_LEVELS[number]):
            if sign == "in":
                left = values.member(left, self._list())
            else:
                left = values.binary(sign, left, self._level(number + 1))
        return left

    def _list(self) -> tuple[Part, ...]:
        self._must("[")
        return self._until("]")

    def _until(self, end: str) -> tuple[Part, ...]:
        found: list[Part] = []
        while not self._next(end):
            if found:
                self._must(",")
            found.append(self._choice())
        return tuple(found)

    def _signed(self) -> Part:
        signs = []
        while sign := self._next("-", "!"):
            signs.append(sign)
        part = self._member()
        for sign in reversed(signs):
            part = values.negative(part) if sign == "-" else values.inverse(part)
        return part

    def _member(self) -> Part:
        part = self._primary()
        while self._next("."):
            name = self._name()
            self._must("(")
            part = values.method(part, name, self._until(")"))
        return part

    def _name(self) -> str:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else _END
        if kind != "name":
            raise FormulaError(f"a name is missing before {text!r}")
        self._at += 1
        return text

    def _primary(self) -> Part:
        if self._next("("):
            part = self._choice()
            self._must(")")
            return part
        if self._at >= len(self._tokens):
            raise FormulaError("it ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "name":
            return values.call(text, self._until(")")) if self._next("(") else _named(text)
        if kind == "sign":
            raise FormulaError(f"{text!r} is out of place")
        return _written(kind, text)


def _named(text: str) -> Part:
    if text in ("true", "false"):
        return values.literal("bool", text == "true")
    if text not in VARIABLES:
        raise FormulaError(f"unknown variable {text!r}; known: {', '.join(VARIABLES)}")
    return Part(VARIABLES[text], lambda v: v[text])


def _written(kind: str, text: str) -> Part:
    if kind == "double":
        return values.literal("double", float(text))
    if kind == "int":
        value = int(text, 0) if text[:2].lower() == "0x" else int(text)
        if value >= 2**63:
            raise FormulaError(f"{text} is too large")
        return values.literal("int", value)
    return values.literal("string", _unquoted(text))


_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


def _unquoted(text: str) -> str:
    def plain(found: re.Match[str]) -> Any:
        if found[1] not in _ESCAPES:
            raise FormulaError(f"unknown escape {found[0]!r}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", plain, text[1:-1])
