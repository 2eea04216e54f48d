"""Builds of the test bed's programs: one at a time on a machine, and who waits is told so."""

import fcntl
import time
from pathlib import Path
from threading import Thread

import pytest

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
