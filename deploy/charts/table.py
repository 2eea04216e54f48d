"""`python -m deploy.charts.table`: writes the table of values into each chart's README.md, from the comments in its
values.yaml. A comment that begins with `# --` describes the key below it."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHARTS: Final = ("dovetail", "dovetail-crd")
BEGIN: Final = "<!-- values -->"
END: Final = "<!-- end of values -->"
MARK: Final = "# -- "


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value."""

    key: str
    default: Any
    words: str


def rows_of(values: Path) -> list[Row]:
    """Every key that is described, or that stands for itself below one that is not."""
    tree = yaml.compose(values.read_text())
    lines = values.read_text().splitlines()
    assert isinstance(tree, yaml.MappingNode)
    return list(_rows(tree, "", lines))


def _rows(node: yaml.MappingNode, above: str, lines: list[str]) -> list[Row]:
    rows: list[Row] = []
    for key, value in node.value:
        name = f"{above}{key.value}"
        words = _described(lines, key.start_mark.line)
        if words or not isinstance(value, yaml.MappingNode):
            default = yaml.safe_load(yaml.serialize(value))
            rows.append(Row(key=name, default=default, words=words))
        else:
            rows += _rows(value, f"{name}.", lines)
    return rows


def _described(lines: list[str], line: int) -> str:
    """The comment above that line."""
    words: list[str] = []
    while line > 0 and lines[line - 1].strip().startswith("#"):
        line -= 1
        text = lines[line].strip()
        if text.startswith(MARK):
            return " ".join([text.removeprefix(MARK), *reversed(words)])
        words.append(text.removeprefix("#").strip())
    return ""


def with_table(page: str, values: Path) -> str:
    """The page with its table as the values are now."""
    head, _, rest = page.partition(BEGIN)
    table = ["| key | default | what it is |", "|---|---|---|"]
    table += [f"| `{row.key}` | `{json.dumps(row.default)}` | {row.words} |" for row in rows_of(values)]
    return f"{head}{BEGIN}\n" + "\n".join(table) + f"\n{END}" + rest.partition(END)[2]


def main() -> int:
    """Write all tables."""
    for name in CHARTS:
        folder = Path(__file__).parent / name
        page = folder / "README.md"
        page.write_text(with_table(page.read_text(), folder / "values.yaml"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
