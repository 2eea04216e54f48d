"""The names that a release needs: `python -m deploy.release.names env|write`.

`env` prints them as variables for a workflow. `write` fills in the templates whose place GitHub and others prescribe; a
test holds them, and that no other file has a name that stands in names.toml.
"""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
NAMES: Final = Path(__file__).with_name("names.toml")
TEMPLATES: Final = Path(__file__).with_name("templates")
# Where each template goes.
WRITTEN: Final[Mapping[str, str]] = {
    "CODEOWNERS": ".github/CODEOWNERS",
    "issue-config.yml": ".github/ISSUE_TEMPLATE/config.yml",
    "SECURITY-INSIGHTS.yml": ".github/SECURITY-INSIGHTS.yml",
}


def names() -> dict[str, str]:
    """By key."""
    found: dict[str, str] = tomllib.loads(NAMES.read_text())
    return found


def filled(template: str, more: Mapping[str, str] | None = None) -> str:
    """The template of that name with @key@ replaced."""
    text = (TEMPLATES / template).read_text()
    for key, value in {**names(), **(more or {})}.items():
        text = text.replace(f"@{key}@", value)
    return text


def main(command: str) -> None:
    """Print or write them."""
    if command == "env":
        print("\n".join(f"DOVETAIL_{key.upper()}={value}" for key, value in names().items()))
        return
    for template, place in WRITTEN.items():
        (ROOT / place).write_text(filled(template))


if __name__ == "__main__":
    main(sys.argv[1])
