"""Find code in a module by what it is, not by how it is written: comments, line breaks and quotes make no difference.

A place is an expression, a pattern of a `match`, or statements that follow one another, inside a function, a method, a
class, an assigned name, or the whole module.
"""

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

PATTERN = "case "
FIELDS_OF_STATEMENTS = ("body", "orelse", "finalbody")
ONE_OF_SEVERAL = ("values", "elts", "args")  # what may be left out of them
Node = ast.expr | ast.stmt | ast.pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """From the first node's start to the last one's end; more than one are statements."""

    first: Node
    last: Node
    before: Node | None = None  # its neighbours, where it is one of several operands, elements or arguments
    after: Node | None = None


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _same(node: ast.AST) -> str:
    """Equal for code that is equal; a name that is read and one that is written are the same."""
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")


def _named(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def scopes(text: str, dotted: str) -> Sequence[ast.AST]:
    """What has this name in the module: more than one for overloads, the module where no name is given."""
    found: list[ast.AST] = [_parsed(text)]
    for name in filter(None, dotted.split(".")):
        found = [inner for outer in found for inner in getattr(outer, "body", ()) if _named(inner) == name]
    return found


def wanted(code: str) -> list[ast.pattern] | list[ast.expr] | list[ast.stmt]:
    """What code in a list of mutations stands for."""
    text = textwrap.dedent(code).strip()
    if text.startswith(PATTERN):
        [match] = ast.parse(f"match x:\n    {text}:\n        pass").body
        assert isinstance(match, ast.Match)
        return [match.cases[0].pattern]
    body = ast.parse(text).body
    return [body[0].value] if len(body) == 1 and isinstance(body[0], ast.Expr) else body


def places(text: str, dotted: str, code: str) -> tuple[Place, ...]:
    """Everywhere in what has this name where the code stands, in the order of the source."""
    sought = wanted(code)
    same = [_same(node) for node in sought]
    found: list[Place] = []
    for outer in (node for scope in scopes(text, dotted) for node in _walk(scope)):
        if isinstance(sought[0], ast.stmt):
            found.extend(_runs(outer, same))
        else:
            found.extend(_inside(outer, type(sought[0]), same[0]))
    return tuple(sorted(found, key=lambda place: (place.first.lineno, place.first.col_offset)))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in an f-string has no place of its own before Python 3.12."""
    if not isinstance(node, ast.JoinedStr):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _runs(outer: ast.AST, same: Sequence[str]) -> Iterator[Place]:
    for field in FIELDS_OF_STATEMENTS:
        body = getattr(outer, field, None)
        if isinstance(body, list):
            for at in range(len(body) - len(same) + 1):
                if all(_same(body[at + n]) == each for n, each in enumerate(same)):
                    yield Place(first=body[at], last=body[at + len(same) - 1])


def _inside(outer: ast.AST, kind: type[ast.AST], same: str) -> Iterator[Place]:
    for field, value in ast.iter_fields(outer):
        nodes = value if isinstance(value, list) else [value]
        several = field in ONE_OF_SEVERAL and not isinstance(outer, ast.Dict)
        for at, node in enumerate(nodes):
            if isinstance(node, ast.expr | ast.pattern) and type(node) is kind and _same(node) == same:
                before = nodes[at - 1] if several and at else None
                after = nodes[at + 1] if several and at + 1 < len(nodes) else None
                yield Place(first=node, last=node, before=before, after=after)


def replaced(text: str, place: Place, becomes: str) -> str:
    """The text with other code at the place. An expression in brackets is the same wherever it stands.

    Nothing in place of one operand, element or argument takes it out with its operator or comma.
    """
    becomes = textwrap.dedent(becomes).strip()
    start, end = _start(text, place.first), _end(text, place.last)
    if isinstance(place.first, ast.pattern):
        becomes = becomes.removeprefix(PATTERN)
    elif not becomes and place.after is not None:
        end = _start(text, place.after)
    elif not becomes and place.before is not None:
        start = _end(text, place.before)
    elif isinstance(place.first, ast.expr) and _is_expression(becomes):
        becomes = f"({becomes})"
    else:
        becomes = textwrap.indent(becomes, " " * place.first.col_offset).lstrip()
    source = text.encode()
    return (source[:start] + becomes.encode() + source[end:]).decode()


def _start(text: str, node: Node) -> int:
    return _offset(text, node.lineno, node.col_offset)


def _end(text: str, node: Node) -> int:
    return _offset(text, node.end_lineno, node.end_col_offset)


def _offset(text: str, line: int | None, column: int | None) -> int:
    """In bytes, as the parser counts columns."""
    assert line is not None and column is not None
    return len("".join(text.splitlines(keepends=True)[: line - 1]).encode()) + column


def _is_expression(code: str) -> bool:
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True
