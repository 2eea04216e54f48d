"""The image holds what a worker needs, nothing that a worker has no use for, and runs as its pod says.

There is no container runtime here: testbed/container.py runs the tree by the same means. What the Containerfile makes
is this very tree, by the same script.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.image import bill, contents, layout
from deploy.image.architectures import ARCHITECTURES
from deploy.image.build import LOCK, MOST_BYTES, OWN
from deploy.image.debian import locked_packages
from dovetail.model.values.json import Json
from testbed.container import Surroundings, can_run, start_container
from testbed.image import image_tree
from tests.unavailable import no_container

pytestmark = [pytest.mark.soak]

SECONDS = 120.0


@pytest.fixture(scope="module")
def tree() -> Path:
    return image_tree()


def test_it_is_small_and_nobody_can_install_or_log_in(tree: Path) -> None:
    names = {file.relative_to(tree).as_posix() for file in tree.rglob("*")}

    assert contents.size_of(tree) < MOST_BYTES
    assert not [name for name in names if re.search(r"(^|/)(bash|dash|sh|pip|apt|dpkg|busybox)$", name)]
    assert not [name for name in names if "/kubernetes/client/" in name or "/aio/client/models/v1" in name]
    assert not [file for file in tree.rglob("*") if not file.is_symlink() and file.stat().st_mode & 0o6000]


def test_every_package_of_the_lock_is_in_it_with_its_licence_and_in_the_bill(tree: Path) -> None:
    wanted = {line.split("==")[0] for line in LOCK.read_text().splitlines() if re.match(r"[a-z]", line)}
    listed = json.loads((tree / bill.BILL).read_text())["components"]
    python = {one["name"].lower().replace("_", "-") for one in listed if one["purl"].startswith("pkg:pypi")}
    debian = {one["name"]: one["hashes"][0]["content"] for one in listed if one["purl"].startswith("pkg:deb")}

    assert python == wanted | {"dovetail"}
    assert debian == {one.name: one.checksum for one in locked_packages("amd64")}
    assert not [one["name"] for one in listed if one["purl"].startswith("pkg:pypi") and not one["licenses"]]
    for name in python:
        assert [*(tree / bill.LICENCES).glob(name.replace("-", "[-_.]") + "/*")], name
    for name in debian:
        assert (tree / "usr/share/doc" / name / "copyright").exists() or (tree / "usr/share/doc" / name).is_symlink(), (
            name
        )
    assert "Apache" in (tree / bill.NOTICE).read_text()


def test_the_same_tree_makes_the_same_image(tree: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    for name in ("dovetail/__init__.py", "dovetail/cli/main.py"):
        (part / contents.LIBRARY / name).parent.mkdir(parents=True, exist_ok=True)
        (part / contents.LIBRARY / name).write_bytes((tree / contents.LIBRARY / name).read_bytes())
    (part / "etc").mkdir()
    (part / "etc/passwd").write_bytes((tree / "etc/passwd").read_bytes())

    first = layout.write_layout(tmp_path / "one", part, OWN, "amd64")
    (part / "etc/passwd").touch()
    second = layout.write_layout(tmp_path / "two", part, OWN, "amd64")

    assert first == second
    manifest = json.loads((tmp_path / "one/blobs/sha256" / first.removeprefix("sha256:")).read_text())
    config = json.loads(
        (tmp_path / "one/blobs/sha256" / manifest["config"]["digest"].removeprefix("sha256:")).read_text()
    )
    assert config["config"]["User"] == "65532:65532"
    assert len(manifest["layers"]) == len(config["rootfs"]["diff_ids"]) == 2


def test_of_another_processor_every_program_is_for_that_one(tree: Path) -> None:
    """Built without running anything of it, with the same files as the one that is tried here but for what is compiled:
    libraries, and where Debian keeps them."""
    other = image_tree("arm64")
    programs = {file: machine for file in other.rglob("*") if (machine := machine_of(file)) is not None}

    assert len(programs) > 50
    assert set(programs.values()) == {ARCHITECTURES["arm64"].elf}
    assert neutral(other) == neutral(tree), "a module or a text that one of them lacks"


def machine_of(file: Path) -> int | None:
    """The processor that a program or library is for; None for another file."""
    if file.is_symlink() or not file.is_file():
        return None
    with file.open("rb") as content:
        head = content.read(20)
    return int.from_bytes(head[18:20], "little") if head.startswith(b"\x7fELF") else None


def neutral(tree: Path) -> set[str]:
    """The Python modules of a tree, which are the same for every processor."""
    names = (file.relative_to(tree).as_posix() for file in tree.rglob("*.py"))
    return {name for name in names if "_sysconfigdata" not in name}


def said_by(tree: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    """A command in the container, to its end."""
    if why := can_run():
        no_container(why)
    security = {"runAsUser": 65532, "runAsGroup": 65532, "readOnlyRootFilesystem": True}
    container: Json = {"args": list(arguments), "env": [], "securityContext": security}
    container["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
    pod: Json = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}}
    pod["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    running = start_container(pod, Surroundings(image=tree, folder=folder))
    try:
        code = running.wait(SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    return code, (folder / "log").read_text()


def test_a_container_ends_with_what_started_it(tree: Path, tmp_path: Path) -> None:
    """A test that is killed must leave no worker behind."""
    running = started(tree, tmp_path / "d", "import time\nprint('runs', flush=True)\ntime.sleep(600)\n")
    log = tmp_path / "d" / "log"
    try:
        until(lambda: log.exists() and "runs" in log.read_text(), "the container runs")
        [inner] = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    finally:
        running.kill()
        running.wait()

    until(lambda: not Path(f"/proc/{inner}").exists(), "its process has ended")


def until(look: Callable[[], bool], words: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not look():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


def test_it_runs_as_nobody_on_a_root_that_cannot_be_written(tree: Path, tmp_path: Path) -> None:
    assert said_by(tree, tmp_path / "a", "--version")[0] == 0

    probe = (
        "import os, pathlib\n"
        "status = pathlib.Path('/proc/self/status').read_text().splitlines()\n"
        "print([line.split() for line in status if line.startswith(('Uid', 'CapBnd', 'CapEff', 'NoNewPrivs'))])\n"
        "pathlib.Path('/tmp/x').write_text('x')\n"
        "try:\n    pathlib.Path('/usr/x').write_text('x')\nexcept OSError as error:\n    print(error.strerror)\n"
    )
    # The product's own entry point, asked to run the probe by way of its settings file would be a back door: the
    # interpreter is asked instead, in the same container.
    code, said = python_in(tree, tmp_path / "b", probe)

    assert code == 0, said
    assert "Read-only file system" in said or "Permission denied" in said
    assert "['Uid:', '65532', '65532', '65532', '65532']" in said
    assert "['CapEff:', '0000000000000000']" in said and "['CapBnd:', '0000000000000000']" in said
    assert "['NoNewPrivs:', '1']" in said


def test_every_module_of_the_product_can_be_loaded_from_it(tree: Path, tmp_path: Path) -> None:
    """What was left out of the packages is missed by nobody, the extras' included."""
    probe = (
        "import importlib, pkgutil, dovetail\n"
        "from dovetail.adapters.kube.official import client, config\n"
        "found = [m.name for m in pkgutil.walk_packages(dovetail.__path__, 'dovetail.')]\n"
        "for name in found:\n    importlib.import_module(name)\n"
        "print('loaded', len(found))\n"
    )
    code, said = python_in(tree, tmp_path / "c", probe)

    assert code == 0, said[-2000:]
    assert int(said.rpartition("loaded ")[2]) > 300


def python_in(tree: Path, folder: Path, code: str) -> tuple[int, str]:
    """What the image's Python says in the same container."""
    running = started(tree, folder, code)
    try:
        ended = running.wait(SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    return ended, (folder / "log").read_text()


def started(tree: Path, folder: Path, code: str) -> "subprocess.Popen[bytes]":
    """The same container with other code in place of the command."""
    scripted = folder / "scripts"
    scripted.mkdir(parents=True)
    (scripted / "dovetail").write_text(f"#!/usr/bin/python3.11 -P\n{code}")
    (scripted / "dovetail").chmod(0o755)
    if why := can_run():
        no_container(why)
    security = {"runAsUser": 65532, "runAsGroup": 65532, "readOnlyRootFilesystem": True}
    container: Json = {"args": [], "env": [], "securityContext": security}
    container["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
    pod: Json = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}}
    pod["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    around = Surroundings(image=tree, folder=folder, files={"/usr/local/bin": scripted})
    return start_container(pod, around)
