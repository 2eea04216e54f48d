"""The formats of `-o`: text, JSON and YAML for every answer, and further ones for some.

`table` is another word for `text`, because some texts are tables and nobody should have to know which. A document is
shown as it is; texts and names are made by the code that knows its content.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dovetail.answers.failures import CommandFailed

if TYPE_CHECKING:
    from dovetail.answers.shown.documents import Document

TEXT: Final = "text"
TABLE: Final = "table"
DOCUMENTS: Final = ("json", "yaml")

Shown = Callable[["Document"], str]


def add_output(command: argparse.ArgumentParser, *more: str) -> None:
    """Add -o, with the formats that this answer has besides the common ones."""
    known = (TEXT, TABLE, *DOCUMENTS, *more)
    words = f"how it is shown: {TEXT} (or {TABLE}; the default), {', '.join(known[2:])}"
    command.add_argument("-o", "--output", action=_Format, choices=known, default=TEXT, metavar="FORMAT", help=words)


class _Format(argparse.Action):
    """Maps the two words for one format to one."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        setattr(namespace, self.dest, TEXT if values == TABLE else values)


def rendered(found: "Document", how: str, others: Mapping[str, Shown]) -> str:
    """The document in that format. `others`: the formats that this answer has besides json and yaml."""
    if how == "json":
        return as_json(found)
    if how == "yaml":
        return as_yaml(found)
    if how not in others:
        known = ", ".join((*others, *DOCUMENTS))
        raise CommandFailed(f"-o {how}: this answer has {known}")
    return others[how](found)


def as_json(found: "Document") -> str:
    import json

    return json.dumps(found, indent=2, ensure_ascii=False)


def as_yaml(found: "Document") -> str:
    """YAML, for people who read whole documents."""
    import yaml

    text: str = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=1000)
    return text.rstrip()
