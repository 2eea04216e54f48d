"""Reads `kinder.md`: in what the stand-ins of the test bed are kinder than what they stand for.

Its tables are the register. What stands in the first column is found again by the server (`cloud/http/gateway.py`) or
by a test, and what has no row there is red.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

REGISTER: Final = Path(__file__).with_name("kinder.md")
COPIED: Final = "Fields that answers copy"
UNREFUSED: Final = "Operations without a refusal"
STAND_INS: Final = "Stand-ins"
OVERRIDES: Final = "What tests set over what is rendered"
KINDER: Final = "Kinder than the real one"
_ROW: Final = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \| (.+) \|$", re.MULTILINE)


def rows(section: str) -> dict[str, str]:
    """What stands in code font in a table's first column, and the rest of its row."""
    text = REGISTER.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return {name: found[2] for found in _ROW.finditer(text) for name in found[1].strip("`").split("`, `")}


def explained(field: str, known: Iterable[str]) -> str | None:
    """The row that explains a copied field; RunInstances answers each instance as DescribeInstances does."""
    as_described = field.replace("RunInstances.Instances[]", "DescribeInstances.Reservations[].Instances[]")
    return next((row for row in known if _covers(row, as_described)), None)


def _covers(row: str, field: str) -> bool:
    return field.startswith(row.removesuffix("*")) if row.endswith("*") else field == row
