"""The web page, through `dovetail top --web` and in a real browser: what is seen, keys alone, dark and light."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.cli.serving.api import page
from dovetail.model.time import format_time
from tests.cli.browser import Browser
from tests.cli.fleet import Served, documents, serving
from tests.cli.test_status_text import NOW

POOL = {"moves": 12, "undone": 1, "back": 2, "predicted": 0.4, "saved": 31.5, "pods": 40}
SAVINGS: Any = {"kind": "Savings", "pools": [{"pool": "default", **POOL}], "total": {"pool": "", **POOL}, "notes": []}
FLIGHT = {
    "id": "2026-05-28T17-26-40.000Z_disruption",
    "at": "2026-05-28T17:26:40Z",
    "kind": "disruption",
    "size": 48213,
}
FLIGHTS: Any = {"kind": "FlightList", "flights": [FLIGHT]}
ENTRY = {"kind": "disruption", "outcome": "done", "reason": "Drifted", "pool": "default", "nodes": ["n"], "by": ""}
LOG = {"entries": [{**ENTRY, "claims": [], "saved": 0.1 * i, "began": NOW - i, "ended": NOW + i} for i in (1, 2, 3)]}


def a_stream() -> str:
    found = documents(1)["status"]
    later = {**found, "now": format_time(NOW + 5), "totals": {**found["totals"], "price": 59.0}}
    return "".join(f"event: status\ndata: {json.dumps(each)}\n\n" for each in (found, later))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    more = {"page": page(), "stream": a_stream(), "savings": SAVINGS, "log": LOG, "replay": FLIGHTS}
    with serving(tmp_path, {**documents(1200), **more}) as found:
        yield found


@pytest.fixture
def address(served: Served) -> Iterator[str]:
    """Of the forwarder, as the command prints it."""
    command = [sys.executable, "-u", "-m", "dovetail.cli.main", "top", "--web"]
    environment = {**os.environ, **served.environment}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().split()[0]
    process.kill()
    process.wait()


def fetched(address: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_the_page_asks_nobody_but_the_worker_and_makes_no_markup_of_what_it_is_told() -> None:
    text = page()

    assert re.findall(r"""(?:src|href)=["'](?!#|data:)""", text) == [] and "@import" not in text
    assert [each for each in re.findall(r"https?://[\w./]+", text) if each != "http://www.w3.org/2000/svg"] == []
    assert "connect-src 'self'" in text
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text) == []


def test_the_forwarder_lets_nobody_in_who_does_not_know_its_address(address: str, served: Served) -> None:
    root, _, _ = address.rpartition("/")
    base, _, _ = root.rpartition("/")

    assert fetched(address)[0] == 200 and "<title>Dovetail" in fetched(address)[1]
    assert json.loads(fetched(f"{root}/nodes")[1])["kind"] == "NodeList"
    assert fetched(f"{base}/page")[0] == fetched(f"{base}/x/page")[0] == 404
    assert fetched(address, Host="evil.example:80")[0] == 404, "a page of another origin has another name for us"
    assert fetched(f"{root}/../../../secrets")[0] in (400, 404)
    assert fetched(f"{root}/%2e%2e/%2e%2e/secrets")[0] == 400
    assert all("/proxy/api/v1/" in path and ".." not in path for path in served.asked)


def test_a_person_with_a_keyboard_alone_sees_everything(address: str, tmp_path: Path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.goes_to(address)
        browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")
        assert "$59.00/h" in browser.until("document.getElementById('totals').innerText")
        assert "drain held for 12m" in browser.says("document.getElementById('needs').innerText")
        assert "from $61.42 to $59.00" in browser.until(
            "document.querySelector('#price svg') && document.querySelector('#price svg').getAttribute('aria-label')"
        )
        browser.presses("/")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 100")
        for letter in "pool=gpu":
            browser.presses(letter)
        browser.until("document.getElementById('where').textContent === '1–100 of 300'")
        browser.says("document.querySelector('#nodes tbody tr').focus()")
        browser.presses("ArrowDown")
        second = browser.says("document.activeElement.dataset.claim")
        browser.presses("Enter")
        browser.until("document.getElementById('about-text').textContent.includes('it stays')")
        assert second.startswith("gpu-") and browser.says("document.getElementById('about').open")
        browser.says("document.getElementById('show-history').click()")
        browser.until("document.querySelectorAll('#gantt rect').length === 3")
        browser.presses("Escape")
        browser.until("!document.getElementById('about').open")
        browser.says("document.getElementById('tab-nodes').focus()")
        browser.presses("ArrowRight")
        browser.until("document.getElementById('plan').textContent.includes('nothing would be done')")
        browser.presses("ArrowRight")
        browser.until("document.querySelectorAll('#by-pool svg, #over-time svg').length === 2")
        assert "$31.50" in browser.says("document.getElementById('saved').innerText")
        browser.says("document.getElementById('tab-savings').focus()")
        browser.presses("ArrowRight")
        browser.until("document.querySelectorAll('#flights tbody tr').length === 1")
        browser.until("document.getElementById('shadow').textContent.includes('both decide alike')")
        browser.says("document.querySelector('#flights button').click()")
        browser.until("document.getElementById('replayed').textContent.includes('17-26-40')")
        light = browser.says("getComputedStyle(document.body).backgroundColor")
        browser.says("document.getElementById('theme').click()")
        assert browser.says("getComputedStyle(document.body).backgroundColor") != light
        assert browser.problems == []
        if folder := os.environ.get("DOVETAIL_SCREENS"):
            take_pictures(browser, Path(folder))
    finally:
        browser.ends()


def test_everything_that_can_be_pressed_has_a_name_for_who_does_not_see_it(address: str, tmp_path: Path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.goes_to(address)
        browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")
        browser.presses("/")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 100")
        browser.asks("Accessibility.enable")
        found = browser.asks("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "tab", "textbox", "searchbox", "combobox", "table", "image", "dialog"}
        unnamed = [
            (node["role"]["value"], node["nodeId"])
            for node in found
            if not node.get("ignored") and node.get("role", {}).get("value") in roles
            if not node.get("name", {}).get("value")
        ]
        tabs = [node for node in found if node.get("role", {}).get("value") == "tab"]
        assert unnamed == [] and len(tabs) == 5
        assert browser.says("document.documentElement.lang") == "en"
    finally:
        browser.ends()


def take_pictures(browser: Browser, folder: Path) -> None:
    """Of every view, dark and light, to be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("dark", "light"):
        browser.says(f"document.documentElement.dataset.theme = '{theme}'")
        for view in ("status", "nodes", "plan", "savings", "back"):
            browser.says(f"document.getElementById('tab-{view}').click()")
            browser.until("!document.body.innerText.includes('asking …')")
            browser.picture(folder / f"{view}-{theme}.png")
