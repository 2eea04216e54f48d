"""The web page, through `dovetail top --web` and in a real browser: what is seen, keys alone, dark and light."""

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.answers.serving.api import page
from dovetail.answers.shown.documents import document
from tests.cli.browser import Browser
from tests.cli.fleet import Served, documents, serving
from tests.cli.paged import FLIGHTS, LOG, ROLES, SAVINGS, VIEWS, a_stream, forwarded
from tests.cli.test_troubles import TROUBLE


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    more = {"page": page(), "stream": a_stream(), "savings document": SAVINGS, "log": LOG, "replay": FLIGHTS}
    with serving(tmp_path, {**documents(1200), **more}) as found:
        yield found


@pytest.fixture
def address(served: Served) -> Iterator[str]:
    """Of the forwarder, as the command prints it."""
    with forwarded(served) as found:
        yield found


def fetched(address: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    asked = urllib.request.Request(address, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
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


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_forwarder_lends_the_kubeconfig_to_nobody_who_writes(address: str, served: Served, method: str) -> None:
    before = list(served.asked)

    assert fetched(address, method)[0] == fetched(address.replace("/page", "/status"), method)[0] == 501
    assert served.asked == before, "nothing has come as far as the API server"


@pytest.mark.slow
def test_what_of_dovetail_does_not_work_stands_above_every_view(tmp_path: Path) -> None:
    trouble = document("x", "y", TROUBLE)
    found = {**documents(3), "page": page()}
    found["status"] = {**found["status"], "troubles": [trouble]}
    browser = Browser(tmp_path / "profile")
    try:
        with serving(tmp_path, found) as served, forwarded(served) as address:
            browser.goes_to(address)
            said = browser.until("document.getElementById('troubles').innerText")
            assert said.startswith("Temporal does not answer for 20s") and "nothing is launched" in said
            browser.says("document.getElementById('tab-nodes').click()")
            assert browser.says("document.getElementById('troubles').checkVisibility()") is True
            assert [each for each in browser.problems if "stream" not in each] == []
    finally:
        browser.ends()


@pytest.mark.slow
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


@pytest.mark.slow
def test_everything_that_can_be_pressed_has_a_name_for_who_does_not_see_it(address: str, tmp_path: Path) -> None:
    browser = Browser(tmp_path / "profile")
    try:
        browser.goes_to(address)
        browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")
        browser.asks("Accessibility.enable")
        for view in VIEWS:
            browser.says(f"document.getElementById('tab-{view}').click()")
            browser.until(f"!document.getElementById('view-{view}').innerText.includes('asking …')")
            assert unnamed(browser) == [], view
        browser.presses("/")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 100")
        browser.says("document.querySelector('#nodes tbody tr').focus()")
        browser.presses("Enter")
        browser.until("document.getElementById('about-text').textContent.includes('it stays')")
        assert unnamed(browser) == [], "of one node"
        assert browser.says("document.querySelectorAll('[role=tab]').length") == len(VIEWS)
        assert browser.says("document.documentElement.lang") == "en"
    finally:
        browser.ends()


def unnamed(browser: Browser) -> list[tuple[str, str]]:
    """What a person who does not see the page could not tell apart."""
    found = browser.asks("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], node["nodeId"])
        for node in found
        if not node.get("ignored") and node.get("role", {}).get("value") in ROLES
        if not node.get("name", {}).get("value")
    ]


def take_pictures(browser: Browser, folder: Path) -> None:
    """Of every view, dark and light, to be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("dark", "light"):
        browser.says(f"document.documentElement.dataset.theme = '{theme}'")
        for view in VIEWS:
            browser.says(f"document.getElementById('tab-{view}').click()")
            browser.until("!document.body.innerText.includes('asking …')")
            browser.picture(folder / f"{view}-{theme}.png")
