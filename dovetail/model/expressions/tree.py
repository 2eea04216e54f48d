"""An expression as it was read: what is evaluated, and what types are checked on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class Variable:
    """What gets its value from outside."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method with what stands before its dot as the first argument, or a sign: `!` `-` `.` `[` `[]`."""

    name: str
    function: Callable[..., Any]
    arguments: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators that bind alike, from left to right: a long sum is no deep tree."""

    first: "Node"
    rest: "tuple[tuple[str, Node], ...]"


@dataclass(frozen=True, slots=True)
class Conditional:
    """`test ? yes : no`."""

    test: "Node"
    yes: "Node"
    no: "Node"


Node = Constant | Variable | Call | Chain | Conditional
