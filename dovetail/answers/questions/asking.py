"""A question, its answer, and the source of answers."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from temporalio.client import Client

from dovetail.answers.change.basis import Basis
from dovetail.answers.doctor.doctor import DoctorAnswer
from dovetail.answers.failures import CommandFailed
from dovetail.answers.look.sources import Look
from dovetail.answers.record.trend import TrendAnswer
from dovetail.answers.shadow.comparing import ShadowReport
from dovetail.answers.shown.documents import Document, document
from dovetail.answers.status.answer import NodesAnswer, StatusAnswer
from dovetail.answers.wording import fitting
from dovetail.model.snapshot import Snapshot
from dovetail.settings.settings import Settings
from dovetail.wiring.world import World

T = TypeVar("T")
Text = Callable[[str, int | None], str]  # from a format of -o, and a width if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as asked. `name`: the object that it is about; `words`: its parameters, sorted."""

    name: str = ""
    words: tuple[tuple[str, str], ...] = ()

    def word(self, key: str, otherwise: str = "") -> str:
        return dict(self.words).get(key, otherwise)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer and its two forms. `text`: None if the command makes it from the document, after choosing from it;
    `besides`: fields of the document that are not in the answer's type."""

    kind: str
    cluster: str
    answer: object
    text: Text | None = None
    besides: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> Document:
        return {**document(self.kind, self.cluster, self.answer), **self.besides}

    def shown(self, form: str, width: int | None) -> str:
        """The text for people; empty if the command makes it."""
        with fitting(width):
            return self.text(form, width) if self.text is not None else ""


class Source(Protocol):
    """Who answers: a worker from its existing view, or a command from a world that it opens.

    `most_entries`: the number of workflows whose histories are read for one log."""

    settings: Settings
    most_entries: int

    async def look(self) -> Look: ...

    async def fleet(self) -> Look:
        """The look of status and nodes. Half of it comes from Temporal, without which a command has none."""
        ...

    async def besides(self, kind: str, answer: StatusAnswer | NodesAnswer) -> Mapping[str, object]:
        """Fields of the documents of status and nodes that only this source has, or has more of."""
        ...

    def basis(self) -> AbstractAsyncContextManager[Basis]: ...

    def world(self) -> AbstractAsyncContextManager[World]: ...

    def snapshot(self) -> Snapshot | None:
        """The cluster as already known; None if it would have to be read."""
        ...

    async def priced(self) -> Snapshot | None:
        """The look, with catalogues."""
        ...

    async def temporal(self) -> Client:
        """The connection; TimeoutError if a worker has none, TemporalUnusable if a command gets none."""
        ...

    async def doctor(self, *, preflight: bool) -> DoctorAnswer: ...

    def shadow(self) -> ShadowReport: ...

    def trend(self) -> TrendAnswer: ...


Ask = Callable[[Source, Asked], Awaitable[Answered]]


def in_one_form(text: Callable[[T], str], answer: T) -> Text:
    """The text of an answer with only one form, whatever is asked for; its width is that of the enclosing block."""
    return lambda _form, _width: text(answer)


def named(settings: Settings, why: str = "it names the cluster in workflow ids") -> str:
    """The cluster's name, without which nothing about it can be found in Temporal."""
    if not settings.cluster:
        raise CommandFailed(f"CLUSTER_NAME: not set; {why}")
    return settings.cluster
