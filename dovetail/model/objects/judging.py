"""Judging one object, and going on without it if that fails.

Objects come from anybody who may write to the cluster. Whatever one of them does to the code that judges it, the others
must not suffer: the object is set aside with a named fault, and all others go on. This is the one place that catches
every exception; a decision makes a `Judging`, passes it to all its parts, and answers with what it found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

from dovetail.model.values.quoting import one_line

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_TEXT: Final = 200  # an exception may quote a megabyte of what it could not read
MOST_KEPT: Final = 1000  # faults that one decision names; further objects are still set aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """An object that could not be judged: which, at what step, and what went wrong."""

    kind: str
    name: str  # namespace/name, or the name alone
    uid: str = ""
    step: str
    message: str

    @property
    def says(self) -> str:
        """The fault in words, for people."""
        return f"{self.kind} {self.name} cannot be judged ({self.step}): {self.message}"


class Judging:
    """The objects that one decision could not judge, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Unjudged] = {}

    @property
    def found(self) -> tuple[Unjudged, ...]:
        """The faults, by kind and name."""
        return tuple(sorted(self._found.values(), key=lambda fault: (fault.kind, fault.name)))

    def judge(
        self, subject: object, step: str, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | Unjudged:
        """The answer to a question about one object; if the question fails, the object's fault."""
        try:
            return question(*args, **kwargs)
        except Exception as error:
            return self._add(subject, step, error)

    def _add(self, subject: object, step: str, error: Exception) -> Unjudged:
        kind = type(subject).__name__
        uid, name = _text(getattr(subject, "uid", "")), _name(subject)
        known = self._found.get((kind, name, uid))
        if known is not None:
            return known
        message = f"{type(error).__name__}: {_text(error)}"
        fault = Unjudged(kind=kind, name=name, uid=uid, step=step, message=message)
        if len(self._found) < MOST_KEPT:
            self._found[kind, name, uid] = fault
        return fault


def _name(subject: object) -> str:
    """namespace/name if the object has a namespace."""
    name, namespace = _text(getattr(subject, "name", "")), _text(getattr(subject, "namespace", ""))
    return f"{namespace}/{name}" if namespace else name


def _text(thing: object) -> str:
    """A text of bounded length; a number with thousands of digits cannot be written as one."""
    try:
        return one_line(str(thing)[:LONGEST_TEXT])
    except ValueError:
        return "(no text)"
