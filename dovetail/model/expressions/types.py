"""The type of an expression before its variables have values, so that a mistake is found when it is written."""

from collections.abc import Mapping
from typing import Final

from dovetail.model.expressions.tree import Call, Chain, Conditional, Constant, Node, Variable
from dovetail.model.expressions.values import ExpressionError, kind_of

_NUMBERS: Final = ("int", "double")
_PLAIN: Final = (*_NUMBERS, "string", "bool")
_RESULTS: Final[Mapping[tuple[str, ...], str]] = {
    **{(sign, kind, kind): "bool" for sign in ("==", "!=", "<", "<=", ">", ">=") for kind in _PLAIN},
    **{(name, kind, kind): kind for name in ("+", "-", "*", "/", "min", "max") for kind in _NUMBERS},
    **{("-", kind): kind for kind in _NUMBERS},
    **{(name, kind): name for name in _NUMBERS for kind in (*_NUMBERS, "string")},
    **{(name, "string", "string"): "bool" for name in ("startsWith", "endsWith", "contains")},
    **{("in", kind, f"list({each})"): "bool" for kind in _PLAIN for each in ("", kind)},
    **{(sign, "bool", "bool"): "bool" for sign in ("&&", "||")},
    **{("?", "bool", kind, kind): kind for kind in _PLAIN},
    ("!", "bool"): "bool",
    ("%", "int", "int"): "int",
    ("+", "string", "string"): "string",
    ("size", "string"): "int",
}


def type_of(node: Node, variables: Mapping[str, str]) -> str:
    """Its type, by those of the variables. ExpressionError if there is none: whole and floating numbers do not mix."""
    match node:
        case Constant(value):
            return kind_of(value)
        case Variable(name):
            return variables[name]
        case Call("[]", _, parts):
            return f"list({' or '.join(sorted({type_of(part, variables) for part in parts}))})"
        case Call(name, _, arguments):
            return _result(name, *[type_of(argument, variables) for argument in arguments])
        case Conditional(test, yes, no):
            return _result("?", *[type_of(part, variables) for part in (test, yes, no)])
        case Chain(first, rest):
            found = type_of(first, variables)
            for sign, part in rest:
                found = _result(sign, found, type_of(part, variables))
            return found


def _result(name: str, *types: str) -> str:
    found = _RESULTS.get((name, *types))
    if found is None:
        raise ExpressionError(f"no {name!r} for {', '.join(types)}")
    return found
