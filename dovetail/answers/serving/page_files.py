"""The web page as it is served: plain files that ask the API by relative addresses and nobody else, and one that is
made of what the product knows: the columns of nodes and of namespaces, and the words of reasons.

There is no build step, and no script or style stands in the markup, so that the page holds a policy which allows none.
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
    """What is below the API at `page` and `page/FILE`; None where no file of ours is."""
    name = "index.html" if path == PAGE else path.removeprefix(f"{PAGE}/")
    return files_of_page().get(name)


@cache
def files_of_page() -> Mapping[str, Answer]:
    """The page's files by name. They are read once and by their own names, so that no path of a request reaches the
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
