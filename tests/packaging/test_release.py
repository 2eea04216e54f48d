"""The steps of a release, each as the workflow calls it."""

import datetime
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from deploy.release import guide, names, packages, trees, version, vulnerabilities
from deploy.release.charts import pack
from deploy.release.site import publish
from deploy.release.version import ROOT, ReleaseError
from testbed.plane import TestbedUnavailable
from testbed.plane.helm import find_helm
from tests.unavailable import no_control_plane

NOW = dict(version.found(ROOT))["pyproject.toml"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Of all files that have the version in them."""
    for name in (version.CHANGELOG, *(place for place, _, _ in version.PLACES)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / version.CHANGELOG).write_text(
        f"# Changelog\n\n## Unreleased\n\n- new\n\n## {NOW} - 2026-11-26\n\n- old\n"
    )
    return tmp_path


class TestNames:
    """What is not decided stands in one file."""

    def test_what_is_written_from_them_is_up_to_date(self) -> None:
        for template, place in names.WRITTEN.items():
            text = (ROOT / place).read_text()
            assert text == names.filled(template), "run: python -m deploy.release.names write"
            assert place == ".github/CODEOWNERS" or yaml.safe_load(text)

    def test_no_other_file_has_one(self) -> None:
        organisation = names.names()["organisation"]
        assert all(organisation in value for value in names.names().values()), "so that one search finds them all"
        found = subprocess.run(["git", "grep", "-lI", "-e", organisation], cwd=ROOT, capture_output=True, text=True)
        allowed = {"deploy/release/names.toml", *names.WRITTEN.values()}
        assert set(found.stdout.split()) <= allowed

    def test_a_workflow_gets_them_as_variables(self, capsys: pytest.CaptureFixture[str]) -> None:
        names.main("env")
        assert f"DOVETAIL_IMAGE={names.names()['image']}\n" in capsys.readouterr().out


class TestVersion:
    """One version, everywhere."""

    def test_all_places_have_the_same(self) -> None:
        assert {found for _, found in version.found(ROOT)} == {NOW}
        version.check(ROOT, f"v{NOW}")

    def test_a_bump_reaches_every_place_and_closes_the_changelog(self, copy: Path) -> None:
        version.bump(copy, "9.8.7", "2027-01-02")

        version.check(copy, "v9.8.7")
        assert {found for _, found in version.found(copy)} == {"9.8.7"}
        assert (version.notes(copy, "9.8.7"), version.notes(copy, NOW)) == ("- new", "- old")
        assert (
            (copy / version.CHANGELOG).read_text().startswith("# Changelog\n\n## Unreleased\n\n## 9.8.7 - 2027-01-02\n")
        )

    def test_a_tag_of_another_version_is_refused_with_the_places(self, copy: Path) -> None:
        with pytest.raises(
            ReleaseError, match=r"v9\.8\.7: pyproject\.toml says .*, dovetail/cli/commands/version\.py says"
        ):
            version.check(copy, "v9.8.7")

    def test_nothing_is_released_twice_or_without_a_word_about_it(self, copy: Path) -> None:
        version.bump(copy, "9.8.7", "2027-01-02")
        with pytest.raises(ReleaseError, match="nothing is unreleased"):
            version.bump(copy, "9.8.8", "2027-01-03")
        with pytest.raises(ReleaseError, match="is written as"):
            version.bump(copy, "9.8", "2027-01-03")
        with pytest.raises(ReleaseError, match=r"no part of 9\.8\.8"):
            version.notes(copy, "9.8.8")


def test_the_site_has_every_version_and_latest_is_the_newest(tmp_path: Path) -> None:
    built, published = tmp_path / "built", tmp_path / "published"
    built.mkdir()
    for number in ("0.9.0", "0.10.0-rc.1", "0.10.0", "0.9.1"):
        (built / "index.html").write_text(number)
        publish(built, published, number)

    entries = json.loads((published / "versions.json").read_text())
    assert [entry["version"] for entry in entries] == ["0.10.0", "0.10.0-rc.1", "0.9.1", "0.9.0"]
    assert [entry["aliases"] for entry in entries] == [["latest"], [], [], []]
    assert (published / "latest" / "index.html").read_text() == "0.10.0"
    assert (published / "0.9.1" / "index.html").read_text() == "0.9.1"
    assert "latest/" in (published / "index.html").read_text()


class TestTrees:
    """A container's files beside those of the script."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        root = tmp_path / "tree"
        (root / "usr" / "bin").mkdir(parents=True)
        (root / "usr" / "bin" / "program").write_text("one")
        (root / "usr" / "bin" / "program").chmod(0o755)
        (root / "bin").symlink_to("usr/bin")
        return root

    def exported(self, tree: Path) -> trees.Files:
        archive = tree.with_name("exported.tar")
        with tarfile.open(archive, "w") as written:
            for path in sorted(tree.iterdir()):
                written.add(path, path.name)
            (tree.parent / "hosts").write_text("127.0.0.1")
            written.add(tree.parent / "hosts", "etc/hosts")
        return trees.of_archive(archive)

    def test_the_same_files_are_the_same_whatever_a_runtime_adds(self, tree: Path) -> None:
        assert trees.differences(trees.of_tree(tree), self.exported(tree)) == []
        assert len(trees.of_tree(tree)) == 2

    def test_a_content_a_mode_a_link_and_what_is_there_alone_are_seen(self, tree: Path) -> None:
        before = trees.of_tree(tree)
        (tree / "usr" / "bin" / "program").chmod(0o644)
        (tree / "bin").unlink()
        (tree / "more").write_text("")

        lines = trees.differences(before, self.exported(tree))
        assert [line.partition(":")[0] for line in lines] == ["bin", "more", "usr/bin/program"]
        assert "link to usr/bin in the tree, missing in the image" in lines[0]


def test_the_plugin_of_krew_runs_the_wheel_of_its_version(tmp_path: Path) -> None:
    manifest = yaml.safe_load(packages.krew(tmp_path, "9.8.7").read_text())
    archive = tmp_path / "kubectl-dovetail.tar.gz"
    content = archive.read_bytes()
    packages.krew(tmp_path, "9.8.7")

    [platform] = manifest["spec"]["platforms"]
    assert archive.read_bytes() == content and platform["sha256"] == hashlib.sha256(content).hexdigest()
    assert platform["uri"].endswith("/v9.8.7/kubectl-dovetail.tar.gz") and manifest["spec"]["version"] == "v9.8.7"
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (tmp_path / "uvx").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "uvx").chmod(0o755)
    said = [
        subprocess.run([tmp_path / platform["bin"], "status"], env={"PATH": path}, capture_output=True, text=True)
        for path in (f"{tmp_path}{os.pathsep}/bin", "/nowhere")
    ]
    assert said[0].stdout == "--from dovetail==9.8.7 kubectl-dovetail status\n"
    assert (said[1].returncode, said[1].stderr) == (1, "dovetail: install uv or pipx, which run it from PyPI\n")


class TestVulnerabilities:
    """OpenVEX of what is known."""

    ROW: ClassVar[dict[str, Any]] = {
        "vulnerability": "CVE-2026-0001",
        "component": "pkg:pypi/aiohttp",
        "status": "not_affected",
        "justification": "vulnerable_code_not_in_execute_path",
        "since": datetime.date(2026, 11, 26),
    }

    def test_what_is_known_can_be_written_and_nothing_is_where_nothing_is(self, tmp_path: Path) -> None:
        rows = vulnerabilities.known()
        vulnerabilities.main(NOW, tmp_path / "openvex.json")
        assert (tmp_path / "openvex.json").exists() == bool(rows)

    def test_a_row_becomes_a_statement_about_the_image(self) -> None:
        [said] = vulnerabilities.document([self.ROW], "9.8.7")["statements"]
        assert said["vulnerability"] == {"name": "CVE-2026-0001"} and said["timestamp"] == "2026-11-26T00:00:00Z"
        [product] = said["products"]
        assert product["@id"].startswith("pkg:oci/dovetail?") and product["@id"].endswith("tag=9.8.7")
        assert product["subcomponents"] == [{"@id": "pkg:pypi/aiohttp"}]

    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ({"status": "fine"}, "fine is no status"),
            ({"justification": ""}, "needs a justification"),
            ({"status": "affected"}, "needs an action"),
        ],
    )
    def test_a_row_that_says_too_little_is_refused(self, row: dict[str, str], words: str) -> None:
        with pytest.raises(ReleaseError, match=words):
            vulnerabilities.document([{**self.ROW, **row}], "9.8.7")


def test_the_guide_is_typed_on_the_kubernetes_that_is_asked_for() -> None:
    text = (ROOT / "docs" / "guides" / "try-it-on-kind.md").read_text()
    steps = {step: guide.commands(text, step) for step in guide.STEPS}

    assert all(steps.values())
    assert guide.with_node(steps[1][0], "kindest/node:v1") == f"{steps[1][0]} --image kindest/node:v1"
    assert [guide.with_node(each, "kindest/node:v1") for each in steps[2]] == steps[2]
    replicas = yaml.safe_load((ROOT / "deploy" / "kind" / "web.yaml").read_text())["spec"]["replicas"]
    assert replicas == guide.PODS


@pytest.mark.cluster
def test_a_packed_chart_has_what_a_catalogue_shows(tmp_path: Path) -> None:
    try:
        helm = str(find_helm(lambda _line: None))
    except TestbedUnavailable as reason:
        no_control_plane(reason)
    packed = {archive.name: archive for archive in pack(tmp_path, helm)}

    assert set(packed) == {f"dovetail-{NOW}.tgz", f"dovetail-crd-{NOW}.tgz"}
    for name, archive in packed.items():
        done = subprocess.run([helm, "lint", "--strict", archive], capture_output=True, text=True)
        assert (done.returncode, "icon is recommended" in done.stdout) == (0, False), done.stdout
        said = subprocess.run([helm, "show", "chart", archive], capture_output=True, text=True, check=True)
        chart = yaml.safe_load(said.stdout)
        assert chart["icon"].endswith("icon.svg") and chart["sources"] and chart["maintainers"] and chart["home"]
        assert len(yaml.safe_load(chart["annotations"]["artifacthub.io/changes"])) > 5
        assert ("artifacthub.io/images" in chart["annotations"]) == (name == f"dovetail-{NOW}.tgz")
