"""promtool plays the stories of the alerts, and reads every query of the dashboards."""

import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.plane.unavailable import TestbedUnavailable
from testbed.prometheus import find_program
from tests.metrics.test_condition_metrics import Scraped, live_and_leave
from tests.unavailable import no_prometheus
from tests.watching.test_alerts_and_dashboards import DASHBOARDS, RULES, STORIES, queries

pytestmark = pytest.mark.soak
STYLE_ONLY = 3  # promtool has read everything, and finds names that it would have chosen otherwise


@pytest.fixture(scope="module")
def promtool() -> Path:
    try:
        return find_program("promtool", print)
    except TestbedUnavailable as error:
        no_prometheus(error)


def said(promtool: Path, *arguments: str) -> str:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_alert_fires_in_its_story_and_none_in_a_quiet_day(promtool: Path) -> None:
    assert "SUCCESS" in said(promtool, "check", "rules", str(RULES))
    assert "SUCCESS" in said(promtool, "test", "rules", str(STORIES))


def test_every_query_of_the_dashboards_can_be_read(promtool: Path, tmp_path: Path) -> None:
    """As recorded rules: promtool checks their expressions."""
    found = [
        query.replace("$__rate_interval", "5m").replace("$__range", "1h")
        for path in DASHBOARDS
        for query in queries(path)
    ]
    recorded = [{"record": f"q:{number}", "expr": query} for number, query in enumerate(found)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": recorded}]}))
    assert f"{len(found)} rules found" in said(promtool, "check", "rules", str(file))


def test_a_page_of_more_pools_than_have_series_can_be_read(promtool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.telemetry.metrics.scrape.MOST_SERIES", 200)  # promtool takes minutes for a large page
    scraped = Scraped(monkeypatch)
    for number in range(20):
        live_and_leave(scraped, f"team-{number}")
    assert scraped.left_out()
    page = "".join(f"{line}\n" for line in scraped.lines())
    done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    assert done.returncode in (0, STYLE_ONLY), done.stderr
