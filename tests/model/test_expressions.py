"""Expressions (AWS-24, PLC-202): what they come to, by another reader of CEL and by CEL's specification."""

from random import Random
from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel

from dovetail.model.expressions.evaluation import read_expression
from dovetail.model.expressions.types import type_of
from dovetail.model.expressions.values import ExpressionError, kind_of

VARIABLES: dict[str, Any] = {"n": 3, "x": 0.5, "name": "m5.large", "on": True, "d": {"a": {"n": 7, "t": "Tesla"}}}
TYPES = {"n": "int", "x": "double", "name": "string", "on": "bool"}
OTHER = celpy.Environment()

PLAIN = {
    "int": ["n", "0x1F", "0", "1", "-3", "7", "9223372036854775807", "-9223372036854775808", "4611686018427387904"],
    "double": ["x", "1e3", ".5", "2.5e-1", "-7.25", "1e308"],
    "string": ["name", r"r'\n'", "''", "'m5'", r"'\u00e9\n'", '"it\'s"', r"'\\'"],
    "bool": ["true", "false", "on"],
}
MEMBERS = {
    "int": ["d.a.n", "d['a'].n", "d.a.none", "[1, 2][n - 2]", "[1][n]"],
    "double": ["double(d.a.t)", "double('1.5')"],
    "string": ["d.a.t", "d.b.t"],
    "bool": ["has(d.a.n)", "has(d.a.m)", "('n' in d.a)", "(d.a.n in [7])"],
}
COMPARED = ("==", "!=", "<", "<=", ">", ">=")
KINDS = list(PLAIN)


def an_expression(kind: str, depth: int, draw: Random, members: bool = True) -> str:
    """An expression of one type; with `members`, also of what only evaluation finds."""

    def part(of: str = kind) -> str:
        return an_expression(of, depth - 1, draw, members)

    def plain(of: str = kind) -> str:
        return draw.choice(PLAIN[of] + (MEMBERS[of] if members else []))

    if not depth or draw.random() < 0.2:
        return plain()
    any_kind = draw.choice(["int", "double", "string"])
    made = {
        "int": [f"{part()} {draw.choice('+-*/%')} {part()}", f"-{part()}", f"size({plain('string')})"],
        "double": [f"{part()} {draw.choice('+-*/')} {part()}", f"-{part()}", f"double({part('int')})"],
        "string": [f"{part()} + {part()}"],
        "bool": [
            f"{part(any_kind)} {draw.choice(COMPARED)} {part(any_kind)}",
            f"{part()} {draw.choice(['&&', '||', '=='])} {part()}",
            f"!{part()}",
            f"{part('int')} in [{part('int')}, {part('int')}]",
            f"{plain('string')}.{draw.choice(['startsWith', 'endsWith', 'contains'])}({plain('string')})",
        ],
    }[kind]
    chosen = f"{part('bool')} ? {part()} : {part()}"
    return f"({draw.choice([*made, chosen])})"


def ours(text: str) -> Any:
    try:
        return read_expression(text, tuple(VARIABLES)).value(VARIABLES)
    except ExpressionError:
        return "an error"


def others(text: str) -> Any:
    try:
        found = OTHER.program(OTHER.compile(text)).evaluate(
            {key: json_to_cel(value) for key, value in VARIABLES.items()}
        )
    except celpy.CELEvalError:
        return "an error"
    return (
        bool(found)
        if isinstance(found, celpy.celtypes.BoolType)
        else next(plain(found) for plain in (int, float, str) if isinstance(found, plain))
    )


def test_an_expression_is_what_another_reader_of_cel_makes_of_it() -> None:
    draw = Random("expressions")
    texts = [an_expression(draw.choice(KINDS), 3, draw) for _ in range(400)]

    compared = [(text, ours(text), others(text)) for text in texts]

    assert [each for each in compared if repr(each[1]) != repr(each[2])] == []  # repr: NaN is itself
    assert 50 < sum(mine == "an error" for _, mine, _ in compared) < 350  # both are played


def test_the_type_of_an_expression_is_known_before_its_value() -> None:
    draw = Random("types")
    for kind in KINDS * 50:
        text = an_expression(kind, 3, draw, members=False)
        expression = read_expression(text, tuple(VARIABLES))

        assert type_of(expression.tree, TYPES) == kind, text
        assert ours(text) == "an error" or kind_of(ours(text)) == kind, text


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%", "&&", "in", *COMPARED])
@pytest.mark.parametrize(("one", "other"), [("int", "double"), ("string", "int"), ("double", "string")])
def test_an_expression_of_mixed_types_has_none(sign: str, one: str, other: str) -> None:
    tree = read_expression(f"{PLAIN[one][0]} {sign} {PLAIN[other][0]}", tuple(VARIABLES)).tree

    with pytest.raises(ExpressionError):
        type_of(tree, TYPES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # https://github.com/google/cel-spec/blob/master/doc/langdef.md, in which the other reader is behind
        ("1 == 1.0 && 1u == 1 && 1 < 1.5 && [1] == [1.0]", True),  # numbers are compared across their types
        ("1 == '1' || true == 1 || null == false || [1] == [true]", False),
        ("[1, 2,][1]", 2),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615u", 2**64 - 1),
        (r"'\x41\u00e9\U0001F600\101\?\`' == 'Aé😀A?`'", True),
        ("r'\\' + \"'\" // the rest is a comment", "\\'"),
        ("1 < 2 == true", True),
        ("-7.25 / 0.0 < -1e308 && 1.0 / 0.0 > 1e308 && 0.0 / 0.0 != 0.0 / 0.0", True),
        ("n == 3 ? 1 : n == 4 ? 2 : 3", 1),
        ("'a'.size() + size([1, 2]) + size(d)", 4),
        ("min(3, 2) + max(3, 2)", 5),
        ("int('+12') + int(-3.9)", 9),
        ("1+" * 2000 + "1", 2001),
        ("true" + " && true" * 500, True),
    ],
)
def test_an_expression_is_what_the_specification_says(text: str, value: Any) -> None:
    assert ours(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "1u + 1",
        "-1u",
        "1u - 2u",
        "1.5 % 1.0",
        "1 + 1.0",
        "1 < 'a'",
        "[1] < [2]",
        "min(1, 'a')",
        "1 && true",
        "n ? 1 : 2",
        "true ? true ? 1 : 2 : 3",  # the one in the middle needs parentheses
        "int('1_2')",
        "int(' 1')",
        "int(true)",
        "int(1.0 / 0.0)",
        "int(1e19)",
        "double('1_0')",
        "double('x')",
        "size(1)",
        "size(1,)",
        "1.",
        "1e400",
        "1.5u",
        "9223372036854775808",
        "-9223372036854775809",
        r"'\q'",
        r"'\UFFFFFFFF'",
        "'a\nb'",
        "has(n)",
        "has(d.b.m)",  # what is before the last dot must exist
        "has(d['a'])",
        "d.a[0]",
        "other",
        "n.none",
        "'a'.matches('a')",
        "-" * 9000 + "1",
        "n" + ".a" * 200,
        "x" * 10_241,
    ],
)
def test_what_has_no_value_by_the_specification_is_an_error(text: str) -> None:
    assert ours(text) == "an error"
