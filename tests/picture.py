"""The picture of the rooms in docs/architecture.md, drawn from the import contract: `python -m tests.picture`.

Each room says what it is in the first sentence of its docstring.
"""

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs/architecture.md"
ADAPTERS: Final = "dovetail/adapters"
UNDER_ADAPTERS: Final = "kubernetes_json"  # what the others stand on
LINKED: Final = ("activities", "worker", "workflows")  # folders of the top level, reached as dovetail.NAME
_PICTURE: Final = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)


def floors() -> list[list[str]]:
    """The rooms of the product, from above; those of one floor do not know one another."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract.get("containers") == ["dovetail"]]
    return [layer.split(" : ") for layer in layers]


def drawn() -> str:
    """The picture, as Mermaid reads it."""
    levels = floors()
    lines = [f"  {_room(name, _folder(name))}" for level in levels for name in level]
    lines += [f"  {' & '.join(level)} --> {' & '.join(below)}" for level, below in pairwise(levels)]
    folders = (folder for folder in (ROOT / ADAPTERS).iterdir() if (folder / "__init__.py").exists())
    adapters = sorted(folder.name for folder in folders)
    lines += [f"  {_room(name, f'{ADAPTERS}/{name}')}" for name in adapters]
    others = " & ".join(name for name in adapters if name != UNDER_ADAPTERS)
    lines += [f"  {others} -.answer.-> ports", f"  {others} --> {UNDER_ADAPTERS}", f"  wiring -.opens.-> {others}"]
    lines += [f"  {_room('api', 'dovetail/api')}"]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def page() -> str:
    """The page with the picture of now."""
    return _PICTURE.sub(lambda _: drawn(), PAGE.read_text(), count=1)


def _folder(name: str) -> str:
    return name if name in LINKED else f"dovetail/{name}"


def _room(name: str, folder: str) -> str:
    said = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
    sentence = re.split(r"[.:;](?:\s|$)", said, maxsplit=1)[0]
    first = sentence[:1] if sentence[1:2].isupper() else sentence[:1].lower()  # JSON stays as it is
    return f'{name}["{folder}<br/>{first}{sentence[1:]}"]'


if __name__ == "__main__":
    PAGE.write_text(page())
