"""What of Dovetail itself the image leaves out, and what commands say there that would need it."""

import shutil
import sys
from pathlib import Path

import pytest

from deploy.image import contents
from dovetail.cli.main import main
from dovetail.settings.settings import SettingsError, read_settings
from dovetail.wiring.world import open_world


def test_the_image_holds_neither_the_simulator_nor_the_demo(tmp_path: Path) -> None:
    library = tmp_path / contents.LIBRARY
    for name in ("dovetail/adapters", "dovetail/cli"):
        shutil.copytree(contents.ROOT / name, library / name)
    (library / "kubernetes/aio/client").mkdir(parents=True)
    for name in contents.KUBERNETES_MODULES:
        (library / "kubernetes/aio/client" / name).mkdir()
    (library / "botocore/data").mkdir(parents=True)
    assert all((library / name).is_dir() for name in contents.OWN_LEFT_OUT)

    contents.prune_library(tmp_path)

    left = {file.relative_to(library).as_posix() for file in library.rglob("*.py")}
    assert not [name for name in left if name.startswith(contents.OWN_LEFT_OUT)]
    assert {"dovetail/adapters/aws/provider.py", "dovetail/cli/main.py"} <= left


def test_the_demo_says_where_there_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "dovetail.cli.demo.command", None)
    assert main(["demo"]) != 0
    assert "demo: it is not part of the image" in capsys.readouterr().err


async def test_an_embedded_world_is_refused_by_the_name_of_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dovetail.adapters.simulator.opening", None)
    monkeypatch.delitem(sys.modules, "dovetail.wiring.simulated", raising=False)
    settings = read_settings({"CLUSTER_NAME": "c", "DOVETAIL_WORLD": "world.db"})
    with pytest.raises(SettingsError, match="DOVETAIL_WORLD: an embedded world is not part of the image"):
        await open_world(settings)
