"""A text fits the screen where there is one; a pipe or a file has no width, and nothing is wrapped there."""

from pathlib import Path

import pytest

from dovetail.answers.wording import fitting, wrapped
from dovetail.cli.main import main
from tests.cli.captured import CLUSTER, Stage
from tests.cli.test_screens import stage  # noqa: F401  the cluster of the captures

pytestmark = pytest.mark.slow
LONG = " ".join(["word"] * 100)
TEXTS = (
    ("explain", "node", "ip-10-0-3-40.eu-west-1.compute.internal"),
    ("explain", "pod", "default/zonal"),
    ("plan",),
    ("plan", "-f", "change.yaml"),
    ("forecast",),
    ("history", "ip-10-0-3-40.eu-west-1.compute.internal"),
    ("doctor",),
)
FROM_HERE = (*TEXTS[:-2], ("doctor", "--local"))


def test_without_a_width_a_text_is_one_line() -> None:
    with fitting(None):
        assert wrapped("note  ", LONG) == [f"  note  {LONG}"]
    with fitting(80):
        assert max(map(len, wrapped("note  ", LONG))) <= 80


def lines(capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, typed: tuple[str, ...], columns: str) -> int:
    """How many lines it prints where COLUMNS says that; "": into a pipe."""
    patch.setenv("COLUMNS", columns)
    capsys.readouterr()
    main(list(typed))
    return len(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("typed", TEXTS, ids=" ".join)
def test_what_a_worker_answers_is_not_wrapped_in_a_pipe(
    stage: Stage,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: tuple[str, ...],
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(stage.served.kubeconfig))
    piped = lines(capsys, monkeypatch, typed, "")
    assert piped == lines(capsys, monkeypatch, typed, "999") < lines(capsys, monkeypatch, typed, "60")


@pytest.mark.parametrize("typed", FROM_HERE, ids=" ".join)
def test_what_is_made_here_fits_the_screen_and_is_not_wrapped_in_a_pipe(
    stage: Stage,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    typed: tuple[str, ...],
) -> None:
    monkeypatch.setenv("DOVETAIL_WORLD", str(stage.world.file))
    monkeypatch.setenv("CLUSTER_NAME", CLUSTER)
    piped = lines(capsys, monkeypatch, typed, "")
    assert piped == lines(capsys, monkeypatch, typed, "999") < lines(capsys, monkeypatch, typed, "60")
