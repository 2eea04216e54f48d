"""The formats of `-o`: what is made here and what a worker answers, in every one that a command has."""

from pathlib import Path

import pytest
import yaml

from dovetail.cli.main import main
from tests.adapters.simulator.manifests import a_pod
from tests.cli.test_explain_node import a_managed_node
from tests.cli.worlds import CLUSTER, a_ready_pool, a_world

FROM_HERE = (
    ("explain", "node", "n1"),
    ("explain", "pod", "default/zonal"),
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world that is looked at from here, with a node that stays and a pod that finds none."""
    world = a_world(
        tmp_path, a_ready_pool(), *a_managed_node(), a_pod("zonal", nodeSelector={"topology.kubernetes.io/zone": "no"})
    )
    monkeypatch.setenv("DOVETAIL_WORLD", str(world.file))
    monkeypatch.setenv("CLUSTER_NAME", CLUSTER)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("typed", FROM_HERE, ids=" ".join)
def test_every_answer_from_here_has_yaml(typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*typed, "-o", "yaml"]) == 0
    told = capsys.readouterr()
    assert (yaml.safe_load(told.out)["cluster"], told.err) == (CLUSTER, "")
