"""What the image is made of, for people and scanners: a bill of materials, all licences, a NOTICE.

Read from what the packages say of themselves. One that names no licence is an error: what may not be given on must not
be in an image by accident.
"""

import hashlib
import json
import shutil
import uuid
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final

from deploy.image.contents import LIBRARY
from deploy.image.debian import BuildError, Package

LICENCES: Final = Path("usr/share/licenses")
BILL: Final = Path("usr/share/dovetail/sbom.cdx.json")
NOTICE: Final = Path("usr/share/dovetail/NOTICE")
_TEXTS: Final = ("licen[cs]e*", "LICEN[CS]E*", "NOTICE*", "COPYING*", "AUTHORS*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One package of Python."""

    name: str
    version: str
    licence: str
    folder: Path  # its dist-info


def components(root: Path) -> list[Component]:
    """Every package of Python that is installed there."""
    folders = sorted((root / LIBRARY).glob("*.dist-info"))
    return [_component(folder) for folder in folders]


def _component(folder: Path) -> Component:
    said = HeaderParser().parsestr((folder / "METADATA").read_text())
    licence = said["License-Expression"] or _short(said["License"])
    if not licence:
        classes = [text for text in said.get_all("Classifier", []) if text.startswith("License ::")]
        licence = ", ".join(text.rpartition(" :: ")[2] for text in classes)
    if not licence:
        raise BuildError(f"{said['Name']} {said['Version']}: its metadata name no licence")
    return Component(name=said["Name"], version=said["Version"], licence=licence, folder=folder)


def _short(text: str | None) -> str:
    """Some write the whole text where its name belongs: the first line of it then."""
    return (text or "").strip().partition("\n")[0].strip()[:80]


def collect_licences(root: Path, found: list[Component]) -> None:
    """The licence texts of the Python packages, where those of the distribution are looked for; and the NOTICE."""
    notices = []
    for component in found:
        into = root / LICENCES / component.name.lower()
        into.mkdir(parents=True, exist_ok=True)
        texts = sorted({file for pattern in _TEXTS for file in component.folder.rglob(pattern) if file.is_file()})
        for text in texts:
            shutil.copyfile(text, into / text.name)
            if text.name.upper().startswith("NOTICE"):
                notices.append(f"{component.name} {component.version}\n\n{text.read_text(errors='replace').strip()}\n")
        if not texts:
            (into / "LICENSE").write_text(f"{component.licence} (as its metadata say; no text is shipped with it)\n")
    listed = "\n".join(f"{one.name} {one.version}: {one.licence}" for one in found)
    head = (
        "Dovetail\n\nThis image holds the packages below, and packages of Debian whose licences are in\n"
        f"/usr/share/doc. The texts of the others are in /{LICENCES}.\n\n{listed}\n"
    )
    (root / NOTICE).parent.mkdir(parents=True, exist_ok=True)
    (root / NOTICE).write_text("\n----\n\n".join([head, *notices]))


def write_bill(root: Path, found: list[Component], base: list[Package], architecture: str) -> None:
    """A bill of materials in CycloneDX. Its number follows from what is in it: a second build writes the same."""
    python = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{one.name.lower()}@{one.version}",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:pypi/{one.name.lower()}@{one.version}",
            "licenses": [{"license": {"name": one.licence}}],
        }
        for one in found
    ]
    debian = [
        {
            "type": "library",
            "bom-ref": f"pkg:deb/debian/{one.name}@{one.version}",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:deb/debian/{one.name}@{one.version}?arch={architecture}&distro=debian-12",
            "hashes": [{"alg": "SHA-256", "content": one.checksum}],
        }
        for one in base
    ]
    listed: list[dict[str, Any]] = [*debian, *python]
    number = uuid.UUID(hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:32])
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "dovetail", "version": _own(found)}},
        "components": listed,
    }
    (root / BILL).parent.mkdir(parents=True, exist_ok=True)
    (root / BILL).write_text(json.dumps(bill, indent=1) + "\n")


def _own(found: list[Component]) -> str:
    return next(one.version for one in found if one.name == "dovetail")
