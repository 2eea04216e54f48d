"""Alerts and dashboards ask for what a worker prints, and each alert leads to its paragraph."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.tools.metrics_page import all_published

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alerts" / "dovetail.yaml"
STORIES = ROOT / "tests" / "watching" / "alerts.yaml"
DASHBOARDS = sorted((ROOT / "deploy" / "dashboards").glob("*.json"))
NAME = re.compile(
    r"\b(?!karpenter_sh_)(?:karpenter|dovetail|operator|controller_runtime|workqueue|client_go|aws_sdk_go|leader_election)_\w+"
)
TEMPORALS = re.compile(r"\btemporal_\w+")
# Of the SDK's own metrics, those that the dashboards show.
OF_THE_SDK = {
    "temporal_worker_task_slots_available",
    "temporal_request",
    "temporal_request_failure",
    "temporal_workflow_task_execution_failed",
}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def queries(dashboard: Path) -> Iterator[str]:
    for panel in json.loads(dashboard.read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def unknown(expression: str) -> set[str]:
    """The names in it that no worker prints."""
    printed = all_published()
    series = set(printed)
    for name, metric in printed.items():
        if metric.type in ("histogram", "summary"):
            series |= {f"{name}_sum", f"{name}_count"}
        if metric.type == "histogram":
            series.add(f"{name}_bucket")
    return {name for name in NAME.findall(expression) if name not in series} | (
        set(TEMPORALS.findall(expression)) - OF_THE_SDK
    )


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_is_printed_and_leads_to_its_paragraph(rule: dict[str, Any]) -> None:
    assert unknown(rule["expr"]) == set()
    page, _, heading = rule["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.M)
    assert heading in {text.lower() for text in headings}
    assert heading == rule["alert"].lower()
    assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_each_alert_is_caused_in_a_story_and_silent_in_the_quiet_one() -> None:
    """The stories themselves are played by promtool, in test_with_prometheus.py."""
    quiet, *causes = yaml.safe_load(STORIES.read_text())["tests"]
    alerts = {rule["alert"] for rule in rules()}
    assert {each["alertname"] for each in quiet["alert_rule_test"]} == alerts
    assert {each["name"].split()[0] for each in causes} == alerts


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_asks_for_what_is_printed(dashboard: Path) -> None:
    found = list(queries(dashboard))
    assert len(found) >= 6
    assert {query: unknown(query) for query in found if unknown(query)} == {}
    document = json.loads(dashboard.read_text())
    panels = document["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_a_gauge_is_never_summed_over_workers_that_each_print_it(dashboard: Path) -> None:
    """What every worker prints of the same thing is taken once: the largest."""
    everybodys = ("dovetail_loop_last_look_age_seconds", "dovetail_temporal_silent_seconds", "dovetail_aws_prices")
    for query in queries(dashboard):
        assert not (query.startswith("sum") and any(name in query for name in everybodys)), query


def test_there_are_six_dashboards() -> None:
    assert [path.stem for path in DASHBOARDS] == [
        *("capacity", "changes", "cost", "disruption", "performance", "temporal"),
    ]
    assert len({json.loads(path.read_text())["uid"] for path in DASHBOARDS}) == 6
