"""The web page as served: static files that ask only the API, by relative addresses, and one file generated from the
product: the columns of nodes and of namespaces, and the words of reasons.

There is no build step, and the markup contains no script or style, so that the page meets a policy that allows none.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from dovetail.answers.explain.explain_node_text import TITLES
from dovetail.answers.explain.pod_words import NODE_WORDS, POOL_WORDS
from dovetail.answers.record import whose
from dovetail.answers.serving.replies import Answer
from dovetail.answers.status.columns import page_columns
from dovetail.disruption.budgets.budgets import UNBOUNDED
from dovetail.model.reasons.disruption_reasons import WhyNot

PAGE: Final = "page"
WORDS: Final = "words.js"
FOLDER: Final = Path(__file__).with_name(PAGE)
_SCRIPT: Final = "text/javascript; charset=utf-8"
_TYPES: Final = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": _SCRIPT}


def file_of_page(path: str) -> Answer | None:
    """What the API serves at `page` and `page/FILE`; None if there is no such file."""
    name = "index.html" if path == PAGE else path.removeprefix(f"{PAGE}/")
    return files_of_page().get(name)


@cache
def files_of_page() -> Mapping[str, Answer]:
    """The page's files by name. They are read once, under their own names, so that no requested path reaches the
    disk."""
    found = {
        file.name: (200, _TYPES.get(file.suffix, "image/svg+xml"), file.read_text(encoding="utf-8"))
        for file in FOLDER.iterdir()
    }
    return {**found, WORDS: (200, _SCRIPT, _words())}


def _words() -> str:
    made = {
        "nodes": page_columns(),
        "namespaces": {
            "columns": [{"name": each.head.lower(), "right": each.right} for each in whose.COLUMNS],
            "labels": whose.LABELS,
            "unknown": whose.UNKNOWN_NOTE,
        },
        "pools": POOL_WORDS,
        "places": NODE_WORDS,
        "methods": TITLES,
        "help": {why.value: why.lifted_by for why in WhyNot},
        "unbounded": UNBOUNDED,
    }
    return f"export default {orjson.dumps(made).decode()};\n"
