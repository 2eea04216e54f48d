"""Evaluates expressions. What is asked of thousands of devices is compiled once, into functions of the variables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dovetail.model.expressions.reader import read_tree
from dovetail.model.expressions.tree import Call, Chain, Conditional, Constant, Node, Variable
from dovetail.model.expressions.values import OPERATORS, ExpressionError, truth

_Evaluation = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class ReadExpression:
    tree: Node
    evaluation: _Evaluation

    def value(self, variables: Mapping[str, Any]) -> Any:
        """Its value for these variables. ExpressionError if it has none."""
        try:
            return self.evaluation(variables)
        except RecursionError:
            raise ExpressionError("nested too deep") from None


@lru_cache(maxsize=1024)
def _read(text: str, variables: tuple[str, ...]) -> ReadExpression | str:
    try:
        tree = read_tree(text, variables)
        return ReadExpression(tree, _compiled(tree))
    except ExpressionError as error:
        return str(error)


def read_expression(text: str, variables: tuple[str, ...]) -> ReadExpression:
    """Raises ExpressionError if it is not understood."""
    found = _read(text, variables)
    if isinstance(found, str):
        raise ExpressionError(found)
    return found


def _compiled(node: Node) -> _Evaluation:
    match node:
        case Constant(value):
            return lambda _: value
        case Variable(name):
            return lambda given: given[name]
        case Call(_, function, arguments):
            values = [_compiled(argument) for argument in arguments]
            return lambda given: function(*[value(given) for value in values])
        case Conditional(test, yes, no):
            asked, one, other = _compiled(test), _compiled(yes), _compiled(no)
            return lambda given: one(given) if truth(asked(given)) else other(given)
        case Chain(first, rest):
            start, further = _compiled(first), [(sign, _compiled(part)) for sign, part in rest]
            if rest[0][0] in ("||", "&&"):
                return _joined([start, *[part for _, part in further]], rest[0][0] == "||")
            return _calculated(start, [(OPERATORS[sign], part) for sign, part in further])


def _calculated(first: _Evaluation, rest: list[tuple[Callable[[Any, Any], Any], _Evaluation]]) -> _Evaluation:
    def calculated(given: Mapping[str, Any]) -> Any:
        found = first(given)
        for operator, part in rest:
            found = operator(found, part(given))
        return found

    return calculated


def _joined(parts: list[_Evaluation], decisive: bool) -> _Evaluation:
    """`||` or `&&`: a part that decides the result does so even if the part on the other side is an error."""

    def joined(given: Mapping[str, Any]) -> bool:
        failed: ExpressionError | None = None
        for part in parts:
            try:
                if truth(part(given)) is decisive:
                    return decisive
            except ExpressionError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return not decisive

    return joined
