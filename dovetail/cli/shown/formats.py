"""The formats of `-o`. A document is shown as it is; tables and names are made by whoever knows what it holds."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from dovetail.cli.output import CommandFailed

if TYPE_CHECKING:
    from dovetail.cli.shown.documents import Document

FORMATS: Final = ("table", "wide", "json", "yaml", "name", "markdown")

Shown = Callable[["Document"], str]


def rendered(found: "Document", how: str, others: Mapping[str, Shown]) -> str:
    """The document in that format. `others`: the formats that this answer has beside json and yaml."""
    if how == "json":
        return as_json(found)
    if how == "yaml":
        return as_yaml(found)
    if how not in others:
        known = ", ".join((*others, "json", "yaml"))
        raise CommandFailed(f"-o {how}: this answer has {known}")
    return others[how](found)


def as_json(found: "Document") -> str:
    """JSON for scripts."""
    import json

    return json.dumps(found, indent=2, ensure_ascii=False)


def as_yaml(found: "Document") -> str:
    """YAML for people who read whole documents."""
    import yaml

    text: str = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=1000)
    return text.rstrip()
