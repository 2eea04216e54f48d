"""The curve of dollars against pods moved: what is recorded is what is drawn, and the default is at its knee."""

from pathlib import Path
from unittest.mock import patch

import orjson
import pytest

from dovetail.disruption.settings import DisruptionSettings
from research.days import curve as curves
from research.days.curve import Point, curve, play_all, table
from research.days.curve_picture import curve_picture
from research.days.play import Course

RECORDED = Path(__file__).parents[2] / "docs/pictures/dollars-and-moves.json"
HOUR = Course(cost=False, nodes=2, hours=1, steps=3, every=20)


def _point(seed: int, worth: float | None, dollars: float, moved: int) -> Point:
    return {"seed": seed, "worth": worth, "dollars": dollars, "moved": moved}


def test_the_chart_is_that_of_the_recorded_plays() -> None:
    assert RECORDED.with_suffix(".svg").read_text() == curve_picture(orjson.loads(RECORDED.read_bytes()))


def test_nothing_that_was_played_is_cheaper_than_the_default_of_the_setting_and_moves_no_more() -> None:
    points = curve(orjson.loads(RECORDED.read_bytes())["points"])
    moved, dollars = points.pop(DisruptionSettings().worth)
    assert len(points) >= 4
    assert all(others_moved > moved or others > dollars for others_moved, others in points.values())


def test_a_point_is_the_mean_over_all_days_and_one_of_some_days_is_none() -> None:
    points = [
        _point(1, None, 100.0, 40),
        _point(2, None, 200.0, 10),
        _point(1, 0.7, 90.0, 20),
        _point(2, 0.7, 160.0, 10),
        _point(1, 0.2, 80.0, 40),
    ]
    assert curve(points) == {0.7: pytest.approx((0.75, 0.85))}


def test_plays_that_the_file_has_are_not_played_again(tmp_path: Path) -> None:
    out = tmp_path / "curve.json"
    first = play_all(HOUR, [1], [0.7], out)
    assert [each["worth"] for each in first] == [None, 0.7]
    with patch.object(curves, "played", side_effect=AssertionError("played again")):
        assert play_all(HOUR, [1], [0.7], out) == first
    more = play_all(HOUR, [1], [0.7, 100.0], out)
    assert more[:2] == first and more[2]["worth"] == 100.0
    assert [line.split()[0] for line in table(more)] == ["worth", "0.7", "100"]
