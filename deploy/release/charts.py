"""`python -m deploy.release.charts OUT [--helm PROGRAM]`: the charts as archives, with what a catalogue shows of them.

Home, icon, sources and Artifact Hub's annotations are added to the copies that are packed: the names in them are those
of names.toml, and the changes those of the changelog.
"""

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.release.names import names
from deploy.release.version import ROOT, ReleaseError, notes

CHARTS: Final = ROOT / "deploy" / "charts"
PACKED: Final = ("dovetail-crd", "dovetail")
ICON: Final = "latest/pictures/icon.svg"


def described(chart: dict[str, Any], root: Path) -> dict[str, Any]:
    """Chart.yaml with all that is known at a release."""
    known, version = names(), chart["version"]
    changes = [line.removeprefix("- ") for line in notes(root, version).splitlines() if line.startswith("- ")]
    image = [{"name": "dovetail", "image": f"{known['image']}:{version}", "platforms": ["linux/amd64", "linux/arm64"]}]
    annotations = {
        "artifacthub.io/license": "Apache-2.0",
        "artifacthub.io/category": "integration-delivery",
        "artifacthub.io/prerelease": str("-" in version).lower(),
        "artifacthub.io/changes": yaml.safe_dump(changes, width=1000, allow_unicode=True),
        "artifacthub.io/links": yaml.safe_dump([{"name": "Documentation", "url": known["site"]}]),
    }
    if chart["name"] == "dovetail":
        annotations["artifacthub.io/images"] = yaml.safe_dump(image)
    return {
        **chart,
        "home": known["site"],
        "icon": f"{known['site']}/{ICON}",
        "sources": [known["repository"]],
        "maintainers": [{"name": "Dovetail maintainers", "email": known["security"], "url": known["repository"]}],
        "annotations": annotations,
    }


def pack(out: Path, helm: str, root: Path = ROOT) -> Iterator[Path]:
    """An archive of each; the worker's image is the one that was released."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in PACKED:
            copy = Path(scratch) / name
            shutil.copytree(CHARTS / name, copy)
            file = copy / "Chart.yaml"
            chart = yaml.safe_load(file.read_text())
            file.write_text(yaml.safe_dump(described(chart, root), sort_keys=False, allow_unicode=True))
            done = subprocess.run(
                [helm, "package", str(copy), "--destination", str(out)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise ReleaseError(f"helm package {name}: {done.stderr.strip()}")
            yield out / f"{name}-{chart['version']}.tgz"


def main() -> None:
    """Pack both."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release.charts")
    parser.add_argument("out", type=Path)
    parser.add_argument("--helm", default="helm")
    given = parser.parse_args()
    for archive in pack(given.out, given.helm):
        print(archive)


if __name__ == "__main__":
    main()
