"""The terms that choose nodes, in `nodes -l`, `replace -l`, and the filters of `dovetail top` and the web page.

KEY=VALUE, KEY!=VALUE, KEY~PART, KEY and !KEY, with commas or spaces between them; all must hold. KEY is a label or, if
the node has no such label, one of the columns that are terms (columns.py); a space in a field is typed as a hyphen. A
single word is a label's name in a selector of nodes to act on, and a part of the line's text in a filter.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from dovetail.answers.failures import CommandFailed
from dovetail.answers.status.answer import NodeRow
from dovetail.answers.status.columns import FIELDS, WORDS

FORMS: Final = "KEY=VALUE, KEY!=VALUE, KEY~PART, KEY or !KEY"
_BETWEEN: Final = re.compile(r"[,\s]+")
_SIGNED: Final = re.compile(r"(?P<key>[^=!~()]+)(?P<sign>!=|==|=|~)(?P<value>[^=!~()]*)")
_ALONE: Final = re.compile(r"!?[^=!~()]+")


@dataclass(frozen=True, slots=True)
class Term:
    """One term. `word`: in a filter, a part of the line."""

    key: str
    sign: Literal["=", "!=", "~", "any", "none", "word"]
    value: str = ""


def selector(text: str) -> tuple[Term, ...]:
    """The terms of a selector of nodes to act on: unreadable ones are refused."""
    return tuple(_chosen(part) for part in _parts(text))


def sieve(text: str) -> tuple[Term, ...]:
    """The terms of a filter, which is typed letter by letter: what is not a term is a word."""
    return tuple(_signed(part) or _absent(part) or Term(part.lower(), "word") for part in _parts(text))


def meets(node: NodeRow, terms: tuple[Term, ...]) -> bool:
    return all(_meets(node, term) for term in terms)


def _parts(text: str) -> list[str]:
    return [part for part in _BETWEEN.split(text) if part]


def _chosen(part: str) -> Term:
    found = _signed(part)
    if found is not None:
        return found
    if not _ALONE.fullmatch(part):
        raise CommandFailed(f"--selector: {part!r}: a term is {FORMS}")
    return _absent(part) or Term(part, "any")


def _signed(part: str) -> Term | None:
    found = _SIGNED.fullmatch(part)
    if found is None:
        return None
    sign: Any = found["sign"].replace("==", "=")
    return Term(found["key"], sign, found["value"])


def _absent(part: str) -> Term | None:
    return Term(part[1:], "none") if part.startswith("!") and _ALONE.fullmatch(part) else None


def _field(node: NodeRow, key: str) -> str | None:
    """A value as it is typed in a term, which ends at a space: not-ours."""
    return str(getattr(node, FIELDS[key])).replace(" ", "-") if key in FIELDS else None


def _meets(node: NodeRow, term: Term) -> bool:
    labels = node.labels
    match term.sign:
        case "any":
            return term.key in labels
        case "none":
            return term.key not in labels
        case "word":
            return any(term.key in getattr(node, name).lower() for name in WORDS)
    value = labels.get(term.key, _field(node, term.key))
    if term.sign == "~":
        return value is not None and term.value.lower() in str(value).lower()
    return bool(value == term.value) is (term.sign == "=")
