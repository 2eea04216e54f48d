"""The image for several processors in one layout, and the lock that names the base of each."""

import json
from pathlib import Path

import pytest

from deploy.image import layout
from deploy.image.architectures import ARCHITECTURES
from deploy.image.debian import NAMES, locked_packages


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_lock_names_the_base_of_each_processor(architecture: str) -> None:
    packages = locked_packages(architecture)

    assert [package.name for package in packages] == sorted(NAMES)
    assert len({package.checksum for package in packages}) == len(NAMES)


def test_a_layout_has_the_image_of_each_processor_that_was_written_into_it_and_of_each_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for content in ("old", "new"):
        (root / "file").write_text(content)
        digests = {name: layout.write_layout(tmp_path / "oci", root, (), name) for name in ARCHITECTURES}

    found = json.loads((tmp_path / "oci/index.json").read_text())["manifests"]
    assert {each["platform"]["architecture"]: each["digest"] for each in found} == digests
    assert digests["amd64"] != digests["arm64"], "the configuration says for which processor it is"
