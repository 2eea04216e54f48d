"""Writes docs/reference/situations.md from the tables of situations: `python -m tests.situations.page`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.situations import by_objects, on_servers, table
from tests.situations.on_servers import OnServers
from tests.situations.scene import Asks, Situation

FILE = Path(__file__).parents[2] / "docs/reference/situations.md"

HEAD = """# What is said when something is wrong

Made from `tests/situations` by `python -m tests.situations.page`; do not edit. Tests bring each situation about, type
the command and hold its answer and its exit code, where it is not 0. `n1` is a node, `default` its NodePool,
`default/lone` a pod.
"""

_COLUMNS = """
| what happens | typed | it says | and never | exit |
|---|---|---|---|---|
"""

SIMULATED = """
## A worker and what it sees

Asked of one worker over a simulated cluster; where the page is named, it is looked at in Chromium.
"""

SERVERS = """
## Real servers

A kube-apiserver, Temporal and a cloud that is played over HTTP. Commands answer within a minute of the cause. What an
object alone brings about, from "all is well" on, is asked of one worker whose only node has drifted and is held by
`nodes: 0`.
"""


def text() -> str:
    """The whole page."""
    simulated = "\n".join(row for each in table.SITUATIONS for row in _rows(each))
    on_them = (*on_servers.SITUATIONS, *by_objects.SITUATIONS)
    servers = "\n".join(row for each in on_them for row in _rows(each))
    return f"{HEAD}{SIMULATED}{_COLUMNS}{simulated}\n{SERVERS}{_COLUMNS}{servers}\n"


def _rows(situation: Situation | OnServers) -> Iterator[str]:
    name = situation.name
    for asks in situation.asks:
        yield _row(name, asks)
        name = ""
    if isinstance(situation, Situation) and situation.page:
        never = _words(situation.page_never)
        yield f"| | the page | {_words(situation.page)} |{f' {never} ' if never else ' '}| |"
    for asks in situation.after:
        yield _row("once it is over", asks)


def _row(name: str, asks: Asks) -> str:
    cells = (name, f"`{asks.command}`", _words(asks.says), _words(asks.never), str(asks.code or ""))
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|"


def _words(words: Sequence[str]) -> str:
    """Each as it is printed."""
    return " · ".join(f"`{each.strip()}`" for each in words)


if __name__ == "__main__":
    FILE.write_text(text())
