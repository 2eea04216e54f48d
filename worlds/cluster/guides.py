"""The commands of a page, block by block; a block that tests do not play has the reason before it in the page's source:
`<!-- not played: reason -->`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BLOCK: Final = re.compile(r"(?:<!-- not played: ([^\n]*?) -->\n)?```sh\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What is typed at once."""

    step: str  # the heading above it, from its first word on
    commands: tuple[str, ...]
    not_played: str = ""


def blocks_of(page: Path) -> list[Block]:
    """In the order in which a person comes to them."""
    found = []
    for section in page.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        found += [
            Block(step=heading, commands=tuple(filter(None, words.splitlines())), not_played=reason)
            for reason, words in _BLOCK.findall(text)
        ]
    return found


def played(page: Path, step: str) -> list[str]:
    """The commands of the blocks of one step that are played, in their order."""
    blocks = [block for block in blocks_of(page) if block.step.startswith(step) and not block.not_played]
    return [command for block in blocks for command in block.commands]
