"""`python -m deploy.release.vulnerabilities VERSION FILE`: OpenVEX of what is known, by vulnerabilities.toml.

A document of OpenVEX has one statement at least: where nothing is known, none is written.
"""

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from deploy.release.names import names
from deploy.release.version import ReleaseError

KNOWN: Final = Path(__file__).with_name("vulnerabilities.toml")
_JUSTIFIED: Final = frozenset(
    {
        "component_not_present",
        "vulnerable_code_not_present",
        "vulnerable_code_not_in_execute_path",
        "vulnerable_code_cannot_be_controlled_by_adversary",
        "inline_mitigations_already_exist",
    }
)
_STATUSES: Final = frozenset({"not_affected", "affected", "fixed", "under_investigation"})


def known() -> list[dict[str, Any]]:
    """The rows of the file."""
    found: list[dict[str, Any]] = tomllib.loads(KNOWN.read_text())["statement"]
    return found


def document(rows: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """As OpenVEX 0.2.0 has it, about the image of that version."""
    here = names()
    latest = max(f"{row['since'].isoformat()}T00:00:00Z" for row in rows)
    return {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": f"{here['repository']}/releases/download/v{version}/openvex.json",
        "author": here["security"],
        "timestamp": latest,
        "version": 1,
        "statements": [
            _statement(row, f"pkg:oci/dovetail?repository_url={here['image']}&tag={version}") for row in rows
        ],
    }


def _statement(row: Mapping[str, Any], product: str) -> dict[str, Any]:
    status, name = row["status"], row["vulnerability"]
    if status not in _STATUSES:
        raise ReleaseError(f"{KNOWN.name}: {name}: {status} is no status")
    if status == "not_affected" and row.get("justification") not in _JUSTIFIED:
        raise ReleaseError(f"{KNOWN.name}: {name}: what is not affected needs a justification of OpenVEX's list")
    if status == "affected" and not row.get("action"):
        raise ReleaseError(f"{KNOWN.name}: {name}: what is affected needs an action")
    more = {"justification": row.get("justification"), "action_statement": row.get("action")}
    return {
        "vulnerability": {"name": name},
        "timestamp": f"{row['since'].isoformat()}T00:00:00Z",
        "products": [{"@id": product, "subcomponents": [{"@id": row["component"]}]}],
        "status": status,
        **{key: value for key, value in more.items() if value},
    }


def main(version: str, file: Path) -> None:
    """Write it where there is anything to say."""
    if rows := known():
        file.write_text(json.dumps(document(rows, version), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
