"""Writes pages that are made from code or data."""

from collections.abc import Mapping
from pathlib import Path


def write(pages: Mapping[str, str], folder: Path) -> None:
    """By name, in that folder; those that have changed are written and printed."""
    for name, text in pages.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            print(page)
