"""The web page where things are not as they should be, or not as usual: errors, a narrow window, a large cluster, both
colour schemes, a person without a mouse."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from docs.tools.reference.screens import CAPTURES
from dovetail.answers.serving.api import page
from tests.cli.browser import Browser
from tests.cli.fleet import documents, serving, serving_by
from tests.cli.paged import FLIGHTS, LOG, SAVINGS, VIEWS, a_stream, forwarded

pytestmark = pytest.mark.slow

NODES: Final = 5000
BROKEN: Final = "the worker is busy with other questions; ask again"
HOSTILE: Final = "<img src=x onerror=document.title='taken'>"
# Every piece of text that is seen, with the contrast of its colour to what lies behind it, where that is too little.
FAINT: Final = """(() => {
  const parts = colour => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const back = each => parts(getComputedStyle(each).backgroundColor);
  const behind = each => { for (let e = each; e; e = e.parentElement) { const c = back(e);
    if (c.length < 4 || c[3] > 0.99) return c; } return back(document.body); };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    const each = text.parentElement, box = each.getBoundingClientRect();
    if (!text.data.trim() || !box.width || /SCRIPT|STYLE/.test(each.tagName)) continue;
    const style = getComputedStyle(each), colour = each.closest("svg") ? style.fill : style.color;
    const a = light(parts(colour)), b = light(behind(each));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push([text.data.slice(0, 30), colour, Number(contrast.toFixed(2))]);
  }
  return found;
})()"""


def texts() -> dict[str, Any]:
    """The texts that an operator would get, of the captures."""
    names = {
        "plan": "plan-120",
        "forecast": "forecast-120",
        "shadow": "shadow-report-120",
        "explain": "explain-node-120",
    }
    return {path: (CAPTURES / f"{name}.txt").read_text() for path, name in names.items()}


def everything(count: int) -> dict[str, Any]:
    return {
        **documents(count),
        **texts(),
        "page": page(),
        "stream": a_stream(),
        "savings document": SAVINGS,
        "log": LOG,
        "replay": FLIGHTS,
    }


@contextmanager
def looking(folder: Path, answers: dict[str, Any]) -> Iterator[Browser]:
    """A browser that has the page of these answers before it."""
    with serving(folder, answers) as served, forwarded(served) as address:
        browser = Browser(folder / "profile")
        try:
            browser.goes_to(address)
            yield browser
            assert browser.problems == []
        finally:
            browser.ends()


def comes_to(browser: Browser, view: str) -> None:
    """A tab, once it has its answers."""
    browser.says(f"document.getElementById('tab-{view}').click()")
    browser.until(f"!document.getElementById('view-{view}').innerText.includes('asking …')")


def seen(browser: Browser, name: str) -> None:
    """A picture, where somebody wants to look at them."""
    if folder := os.environ.get("DOVETAIL_SCREENS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(folder) / f"{name}.png")


def named(browser: Browser) -> None:
    browser.until("document.getElementById('cluster')?.textContent === 'prod-eu1'")


def test_a_narrow_window_is_not_wider_than_itself(tmp_path: Path) -> None:
    with looking(tmp_path, everything(300)) as browser:
        browser.asks("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
        named(browser)
        for view in VIEWS:
            comes_to(browser, view)
            assert browser.says("document.documentElement.scrollWidth") <= 400, view
            outside = (
                "[...document.querySelectorAll('main td')].filter(c => c.getBoundingClientRect().right > 400).length"
            )
            assert browser.says(outside) == 0, view
            seen(browser, f"{view}-narrow")
        browser.presses("/")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 100")
        browser.says("document.querySelector('#nodes tbody tr').click()")
        browser.says("document.getElementById('show-history').click()")
        browser.until("document.querySelectorAll('#gantt rect').length === 3")
        inside = "[...document.querySelectorAll('#about button')].every(b => b.getBoundingClientRect().right <= 400)"
        assert browser.says(inside), "every button of the dialog can be reached"
        seen(browser, "history-narrow")


def test_every_text_can_be_read_in_both_colour_schemes(tmp_path: Path) -> None:
    with looking(tmp_path, everything(300)) as browser:
        named(browser)
        backs = []
        for scheme in ("dark", "light"):
            wanted = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.asks("Emulation.setEmulatedMedia", features=wanted)
            backs.append(browser.says("getComputedStyle(document.body).backgroundColor"))
            for view in VIEWS:
                comes_to(browser, view)
                assert browser.says(FAINT) == [], (scheme, view)
                seen(browser, f"{view}-{scheme}")
        assert len(set(backs)) == 2, "the page follows the system"


def test_five_thousand_nodes_are_paged_filtered_and_grouped(tmp_path: Path) -> None:
    with looking(tmp_path, everything(NODES)) as browser:
        named(browser)
        comes_to(browser, "nodes")
        assert browser.until("document.querySelectorAll('#nodes tbody tr').length") == 100
        assert browser.says("document.getElementById('where').textContent") == "1–100 of 5000"
        browser.says("for (let i = 0; i < 60; i++) document.getElementById('after').click()")
        assert browser.says("document.getElementById('where').textContent") == "4901–5000 of 5000"
        browser.says("document.getElementById('group').value = 'zone'")
        browser.says("document.getElementById('group').dispatchEvent(new Event('change'))")
        sums = browser.says("document.querySelector('#nodes tr.group').innerText")
        assert sums.startswith("eu-west-1a: 1667 nodes, $"), sums
        browser.presses("/")
        for letter in "ip-10-0-19-249":
            browser.presses(letter)
        assert browser.until("document.getElementById('where').textContent === '1–1 of 1'")


def test_an_api_that_answers_with_errors_is_quoted_in_every_view(tmp_path: Path) -> None:
    message = json.dumps({"kind": "Error", "message": BROKEN})

    def answer(target: str) -> tuple[int, str, str]:
        if target.startswith("page"):
            return 200, "text/html", page()
        return (200, "application/json", "{}") if target.startswith("version") else (503, "application/json", message)

    with serving_by(tmp_path, answer) as served, forwarded(served) as address:
        browser = Browser(tmp_path / "profile")
        try:
            browser.goes_to(address)
            for view in VIEWS:
                comes_to(browser, view)
                browser.until(f"document.getElementById('view-{view}').innerText.includes({BROKEN!r})")
                seen(browser, f"{view}-broken")
            assert browser.says("document.getElementById('live').className") == "needs"
            assert browser.problems == []
        finally:
            browser.ends()


def test_what_was_seen_last_stays_where_the_worker_no_longer_answers(tmp_path: Path) -> None:
    trouble = f"event: trouble\ndata: {json.dumps({'message': BROKEN})}\n\n"
    with looking(tmp_path, {**everything(1), "stream": a_stream() + trouble}) as browser:
        said = browser.until(f"document.getElementById('live').textContent.includes({BROKEN!r})")
        assert said and "as of 20" in browser.says("document.getElementById('live').textContent")
        assert "$59.00/h" in browser.says("document.getElementById('totals').innerText")


def test_a_name_with_markup_in_it_stays_a_name(tmp_path: Path) -> None:
    answers = everything(3)
    answers["nodes"]["nodes"][0] |= {"name": HOSTILE, "what": HOSTILE}
    with looking(tmp_path, answers) as browser:
        comes_to(browser, "nodes")
        assert browser.until("document.getElementById('nodes').innerText.includes('onerror')")
        assert browser.says("document.images.length") == 0 and browser.says("document.title") != "taken"


def test_without_a_mouse_every_view_and_every_control_is_reached(tmp_path: Path) -> None:
    with looking(tmp_path, everything(300)) as browser:
        named(browser)
        active = "document.activeElement.id"
        tabbed_to(browser, f"{active} === 'tab-status'")
        for view in VIEWS[1:]:
            browser.presses("ArrowRight")
            browser.until(f"{active} === 'tab-{view}' && !document.getElementById('view-{view}').hidden")
        browser.until("document.querySelectorAll('#flights button').length === 1")
        tabbed_to(browser, "document.activeElement.dataset.flight")
        browser.presses("Enter")
        browser.until("document.getElementById('replayed').textContent.includes('17-26-40')")
        browser.presses("/")
        tabbed_to(browser, "document.activeElement.dataset.sort === 'name'")
        browser.presses("Enter")
        browser.until("document.querySelector('th[aria-sort=ascending]')?.innerText.startsWith('node')")
        tabbed_to(browser, "document.activeElement.dataset.claim")
        row = browser.says("document.activeElement.dataset.claim")
        browser.presses("Enter")
        browser.until(
            "document.getElementById('about').open && document.getElementById('about-text').textContent.length > 100"
        )
        tabbed_to(browser, f"{active} === 'at'")
        for letter in "3h":
            browser.presses(letter)
        browser.presses("Enter")
        browser.presses("Escape")
        browser.until("!document.getElementById('about').open")
        assert browser.says("document.activeElement.dataset.claim") == row, "back where the person was"


@pytest.mark.parametrize("wanted", ["data-sort", "data-claim"])
def test_what_a_person_has_tabbed_to_is_kept_when_new_answers_come(tmp_path: Path, wanted: str) -> None:
    with looking(tmp_path, everything(30)) as browser:
        comes_to(browser, "nodes")
        browser.until("document.querySelectorAll('#nodes tbody tr').length === 30")
        tabbed_to(browser, f"document.activeElement.hasAttribute('{wanted}')")
        there = browser.says(f"document.activeElement.getAttribute('{wanted}')")
        browser.says("document.querySelector('#nodes table').id = 'old-table'")
        browser.says("askNodes()")
        browser.until("document.querySelector('#nodes table') && !document.getElementById('old-table')")
        assert browser.says(f"document.activeElement.getAttribute('{wanted}')") == there


def tabbed_to(browser: Browser, wanted: str) -> None:
    """By the Tab key, as often as a person might bear."""
    for _ in range(40):
        if browser.says(f"Boolean({wanted})"):
            return
        browser.presses("Tab")
    raise AssertionError((wanted, browser.says("document.activeElement.outerHTML.slice(0, 200)")))
