"""Write the reference pages: python -m acceptance.reference FOLDER."""

import sys
from pathlib import Path

from acceptance.reference.pages import pages


def write(folder: Path) -> list[Path]:
    """Each page that has changed, in that folder."""
    changed = []
    for name, text in pages().items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            changed.append(page)
    return changed


if __name__ == "__main__":
    for page in write(Path(sys.argv[1])):
        print(page)
